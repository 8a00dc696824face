"""Several collections as one, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphsc.core.errors import DataError
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.ragged import pointer
from graphsc.data.strings import Strings
from graphsc.data.table import Table


def concatenate(parts: Sequence[GraphCollection]) -> GraphCollection:
    """All graphs of all parts, in order; columns, tasks and features must agree."""
    if not parts:
        raise DataError("nothing to concatenate")
    first = parts[0]
    for position, part in enumerate(parts):
        for what in ("features", "tasks"):
            if getattr(part, what) != getattr(first, what):
                raise DataError(f"part {position} has other {what} than part 0")
        if dict(part.classes) != dict(first.classes):
            raise DataError(f"part {position} has other classes than part 0")
        if (part.labels is None) != (first.labels is None):
            raise DataError(f"part {position} differs from part 0 in having labels")
        part.touch(np.arange(len(part)))
    return replace(
        first,
        node_ptr=pointer(np.concatenate([np.diff(part.node_ptr) for part in parts])),
        edge_ptr=pointer(np.concatenate([np.diff(part.edge_ptr) for part in parts])),
        edge_index=np.concatenate([part.edge_index for part in parts], axis=1),
        nodes=Table.concatenate([part.nodes for part in parts]),
        edges=Table.concatenate([part.edges for part in parts]),
        undirected=all(part.undirected for part in parts),
        ids=_join_ids([part.ids for part in parts]),
        labels=None
        if first.labels is None
        else np.concatenate([part.labels for part in parts if part.labels is not None]),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        guard=None,
    )


def _join_ids(parts: Sequence[Ids]) -> Ids:
    if any(isinstance(part, Strings) for part in parts):
        return Strings.of(str(identity) for part in parts for identity in part)
    return np.concatenate([part for part in parts if not isinstance(part, Strings)])
