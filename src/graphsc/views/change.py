"""What a view does to a batch, before anything is done: masks, new edges, new features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class AddedEdges:
    """Directed edges to add, in the node numbers of the unchanged batch."""

    source: Tensor  # A, int32
    destination: Tensor  # A, int32
    like: Tensor | None = None  # A: the edge whose attributes each gets; needed if edges have any


@dataclass(frozen=True, eq=False)
class NewFeatures:
    """Nodes that get other features: dense rows, or codes (their floats become 0)."""

    nodes: Tensor  # M, int64, distinct
    rows: Tensor  # M x width floats, or M x K codes


@dataclass(frozen=True, eq=False)
class Change:
    """Changes to a batch of N nodes and E edges; what is None stays as it is."""

    nodes: Tensor | None = None  # N, true = keep
    edges: Tensor | None = None  # E, true = keep; edges of a lost node go with it
    added: AddedEdges | None = None
    dense: NewFeatures | None = None
    codes: NewFeatures | None = None
    directed: bool = False  # the two directions of an edge may have met different fates


def merge(changes: Sequence[Change]) -> Change:
    """All changes in one; each must concern graphs that the others leave alone."""
    if len(changes) == 1:
        return changes[0]
    added = [change.added for change in changes if change.added is not None]
    return Change(
        nodes=_both([change.nodes for change in changes]),
        edges=_both([change.edges for change in changes]),
        added=_join(added) if added else None,
        dense=_features([change.dense for change in changes]),
        codes=_features([change.codes for change in changes]),
        directed=any(change.directed for change in changes),
    )


def _both(masks: Sequence[Tensor | None]) -> Tensor | None:
    result: Tensor | None = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result & mask
    return result


def _join(added: Sequence[AddedEdges]) -> AddedEdges:
    like = [part.like for part in added if part.like is not None]
    return AddedEdges(
        torch.cat([part.source for part in added]),
        torch.cat([part.destination for part in added]),
        torch.cat(like) if like else None,
    )


def _features(parts: Sequence[NewFeatures | None]) -> NewFeatures | None:
    present = [part for part in parts if part is not None]
    if not present:
        return None
    return NewFeatures(
        torch.cat([part.nodes for part in present]), torch.cat([part.rows for part in present])
    )
