"""One chunk of rows to one collection: what a worker does, and what a short source needs once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from graphsc.data.assemble import assemble
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.molecules.columns import ATOM, BOND, CHIRALITY, DIRECTION
from graphsc.data.molecules.featurise import featurise
from graphsc.data.molecules.labels import label_table, problem_of
from graphsc.data.molecules.outcome import Outcome
from graphsc.data.molecules.rejects import SHOWN, Rejected
from graphsc.data.molecules.rows import Row
from graphsc.data.strings import Strings
from graphsc.data.table import Table


@dataclass(frozen=True)
class Plan:
    """What is the same for all chunks of a source."""

    name: str
    features: str
    tasks: tuple[str, ...]
    classes: dict[str, tuple[str, ...]]
    has_ids: bool
    max_atoms: int
    max_length: int

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def chunk_to_collection(rows: Sequence[Row], plan: Plan) -> tuple[GraphCollection | None, Outcome]:
    """Featurise the rows that hold molecules; no collection where none does."""
    problems = [row.problem or problem_of(row, plan.tasks, plan.classes) for row in rows]
    found = featurise(
        [row.smiles if problem is None else "" for row, problem in zip(rows, problems, strict=True)],
        max_atoms=plan.max_atoms,
        max_length=plan.max_length,
    )
    rejected = [
        Rejected(row.number, row.line, row.smiles[:SHOWN], problems[position] or reason, row.id)
        for position, reason in found.rejected
        for row in (rows[position],)
    ]
    outcome = Outcome(len(rows), rejected, found.other_bonds)
    if not len(found.kept):
        return None, outcome
    kept = [rows[position] for position in found.kept.tolist()]
    ids: Ids = np.array([row.number for row in kept], dtype=np.int64)
    if plan.has_ids:
        ids = Strings.of(row.id or str(row.number) for row in kept)
    collection = assemble(
        node_counts=found.node_counts,
        edge_counts=found.edge_counts,
        source=found.source,
        destination=found.destination,
        nodes=Table.of(len(found.atoms), found.atoms, [ATOM, CHIRALITY]),
        edges=Table.of(len(found.bonds), found.bonds, [BOND, DIRECTION]),
        labels=label_table([row.labels for row in kept], plan.tasks, plan.classes) if plan.tasks else None,
        tasks=plan.tasks,
        classes=plan.classes,
        ids=ids,
        name=plan.name,
        features=plan.features,
    )
    return collection, outcome
