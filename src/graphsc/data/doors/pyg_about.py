"""What PyG's `Data` has no name for: ids, the meaning of codes, names of tasks.

It leaves with every graph as the attributes `graphsc_id` and `graphsc_about`, and is read back from there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphsc.core.errors import DataError, GraphscError
from graphsc.data.collection import Ids
from graphsc.data.strings import Strings
from graphsc.data.table import Table, columns_from_json, columns_to_json

if TYPE_CHECKING:
    from torch_geometric.data import Data

ID, ABOUT = "graphsc_id", "graphsc_about"


@dataclass(frozen=True)
class About:
    """What a collection knows that numbers do not tell."""

    tables: dict[str, Table]  # "x" and "edge_attr", without rows
    features: str
    undirected: bool
    tasks: tuple[str, ...]
    classes: dict[str, tuple[str, ...]]

    def to_json(self) -> str:
        tables = {
            attribute: [columns_to_json(table.columns), table.float_names]
            for attribute, table in self.tables.items()
        }
        return json.dumps({**vars(self), "tables": tables})

    @classmethod
    def of_json(cls, text: str) -> About:
        """Read what `to_json` wrote; any of five errors if it is something else."""
        saved = json.loads(text)
        tables = {}
        for attribute in ("x", "edge_attr"):
            stored, float_names = saved["tables"][attribute]
            known = columns_from_json(stored)
            codes, floats = np.zeros((0, len(known)), np.int64), np.zeros((0, len(float_names)))
            tables[attribute] = Table.of(0, codes, known, floats, tuple(float_names))
        classes = {task: tuple(names) for task, names in saved["classes"].items()}
        return cls(tables, str(saved["features"]), bool(saved["undirected"]), tuple(saved["tasks"]), classes)


def about_of(graphs: Sequence[Data]) -> About | None:
    """What all graphs say of themselves; they must say the same, for codes mean nothing without it."""
    said = [graph.get(ABOUT) for graph in graphs]
    for index, text in enumerate(said):
        if text != said[0]:
            raise DataError(
                f"{ABOUT} of graph {index} is not that of graph 0: equal numbers may mean other things",
                hint="join by GraphCollection.concatenate, or remove the attribute from all graphs",
            )
    if not said or said[0] is None:
        return None
    try:
        return About.of_json(said[0])
    except (ValueError, TypeError, KeyError, AttributeError, GraphscError) as error:
        raise DataError(f"{ABOUT} of graph 0 is damaged", hint="remove the attribute") from error


def ids_of(graphs: Sequence[Data]) -> Ids | None:
    """The ids that left with the graphs, if all have one of one kind."""
    ids = [graph.get(ID) for graph in graphs]
    # A Batch makes tensors of whole numbers.
    ids = [identity.item() if getattr(identity, "numel", int)() == 1 else identity for identity in ids]
    if all(isinstance(identity, str) for identity in ids):
        return Strings.of(ids)
    if all(type(identity) is int for identity in ids):
        return np.array(ids, dtype=np.int64)
    return None
