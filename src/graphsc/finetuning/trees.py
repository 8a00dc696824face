"""Forests and boosted trees of scikit-learn as flat arrays, which are stored without pickles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import GraphscError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_ROWS = 256  # molecules that walk down all trees at a time
_CHECKED = 32  # training rows on which the arrays must give what scikit-learn gives


@dataclass(frozen=True)
class Trees:
    """Trees of one task: `offset` plus `factor` times the sum of the values of the leaves that a row reaches.

    A row goes left where its feature is at most the threshold. A leaf is its own child on both sides.
    """

    roots: NDArray[np.int32]  # per tree
    feature: NDArray[np.int32]  # per node, like all that follow
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    offset: float = 0.0
    factor: float = 1.0

    @classmethod
    def constant(cls, value: float) -> Trees:
        """No tree, one value for every row."""
        nothing, numbers = np.zeros(0, np.int32), np.zeros(0, np.float32)
        return cls(nothing, nothing, numbers, nothing, nothing, numbers, value)

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """One number per row (rows x features)."""
        sums = np.zeros(len(rows))
        for start, values in self._leaves(rows):
            sums[start : start + _ROWS] = values.sum(axis=1, dtype=np.float64)
        predicted: NDArray[np.float64] = self.offset + self.factor * sums
        return predicted

    def deviation(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """The standard deviation (ddof 0) over the trees of a forest, one number per row."""
        deviations = np.zeros(len(rows))
        for start, values in self._leaves(rows):
            deviations[start : start + _ROWS] = values.std(axis=1, dtype=np.float64)
        return deviations

    def _leaves(self, rows: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """The values of the leaves that some rows reach (rows x trees), with the position of the first."""
        for start in range(0, len(rows) if len(self.roots) else 0, _ROWS):
            part = rows[start : start + _ROWS]
            node = np.tile(self.roots, (len(part), 1))
            moving = self.left[node] != node
            while moving.any():
                row, tree = np.nonzero(moving)
                at = node[row, tree]
                go_left = part[row, self.feature[at]] <= self.threshold[at]
                following = np.where(go_left, self.left[at], self.right[at])
                node[row, tree] = following
                moving[row, tree] = self.left[following] != following
            yield start, self.value[node]

    def with_columns(self, columns: NDArray[np.integer]) -> Trees:
        """The same trees for wider rows, of which these are the columns that the trees know."""
        feature = columns[self.feature].astype(np.int32) if len(self.feature) else self.feature
        return Trees(
            self.roots, feature, self.threshold, self.left, self.right, self.value, self.offset, self.factor
        )


def trees_of_forest(forest: BaseEstimator, rows: NDArray[np.float32]) -> Trees:
    """The trees of a random forest: the mean of its trees, of class 1 in a classification.

    `rows` are some training rows, on which the result is compared with the forest's.
    """
    tables = []
    for estimator in forest.estimators_:
        tree = estimator.tree_
        value = tree.value[:, 0, :]
        if value.shape[1] > 1:
            value = value / value.sum(axis=1, keepdims=True)
        leaf = tree.children_left < 0
        tables.append(
            (leaf, tree.feature, tree.threshold, tree.children_left, tree.children_right, value[:, -1])
        )
    trees = _join(tables, 0.0, 1 / len(tables))
    expected = (
        forest.predict_proba(rows[:_CHECKED])[:, 1]
        if hasattr(forest, "predict_proba")
        else forest.predict(rows[:_CHECKED])
    )
    return _checked(trees, rows, expected)


def trees_of_boosting(model: BaseEstimator, rows: NDArray[np.float32]) -> Trees:
    """The trees of scikit-learn's histogram gradient boosting: log-odds, or values of a regression."""
    tables = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        tables.append(
            (
                leaf,
                nodes["feature_idx"],
                nodes["num_threshold"],
                nodes["left"],
                nodes["right"],
                nodes["value"],
            )
        )
    offset = float(np.asarray(model._baseline_prediction).ravel()[0])
    expected = (
        model.decision_function(rows[:_CHECKED])
        if hasattr(model, "decision_function")
        else model.predict(rows[:_CHECKED])
    )
    return _checked(_join(tables, offset, 1.0) if tables else Trees.constant(offset), rows, expected)


def _join(tables: Sequence[tuple[NDArray[Any], ...]], offset: float, factor: float) -> Trees:
    starts = np.cumsum([0, *(len(table[0]) for table in tables)])
    columns: list[list[NDArray[Any]]] = [[] for _ in range(5)]
    for start, (leaf, feature, threshold, left, right, value) in zip(starts[:-1], tables, strict=True):
        own = np.arange(len(leaf)) + start
        # Rows are 32 bits wide: a threshold rounded down separates them just as the exact one does.
        rounded = threshold.astype(np.float32)
        above = rounded.astype(np.float64) > threshold
        rounded = np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded)
        columns[0].append(np.where(leaf, 0, feature))
        columns[1].append(np.where(leaf, np.float32(0), rounded))
        columns[2].append(np.where(leaf, own, left.astype(np.int64) + start))
        columns[3].append(np.where(leaf, own, right.astype(np.int64) + start))
        columns[4].append(np.where(leaf, value, 0.0))
    feature, threshold, left, right, value = (np.concatenate(column) for column in columns)
    return Trees(
        starts[:-1].astype(np.int32), feature.astype(np.int32), threshold.astype(np.float32),
        left.astype(np.int32), right.astype(np.int32), value.astype(np.float32), offset, factor,
    )  # fmt: skip


def _checked(trees: Trees, rows: NDArray[np.float32], expected: NDArray[np.floating]) -> Trees:
    if not np.allclose(trees.predict(rows[:_CHECKED]), expected, rtol=1e-3, atol=1e-4):
        raise GraphscError(
            "this version of scikit-learn stores its trees in another way", hint="use the pinned version"
        )
    return trees


def pack_trees(name: str, tasks: Sequence[Trees]) -> dict[str, NDArray[np.generic]]:
    """The trees of several tasks as a few arrays, whose names start with `name`."""
    return {
        f"{name}.roots": np.concatenate([trees.roots for trees in tasks]),
        f"{name}.feature": np.concatenate([trees.feature for trees in tasks]),
        f"{name}.threshold": np.concatenate([trees.threshold for trees in tasks]),
        f"{name}.left": np.concatenate([trees.left for trees in tasks]),
        f"{name}.right": np.concatenate([trees.right for trees in tasks]),
        f"{name}.value": np.concatenate([trees.value for trees in tasks]),
        f"{name}.trees": np.array([len(trees.roots) for trees in tasks], np.int64),
        f"{name}.nodes": np.array([len(trees.value) for trees in tasks], np.int64),
        f"{name}.offset": np.array([trees.offset for trees in tasks], np.float64),
        f"{name}.factor": np.array([trees.factor for trees in tasks], np.float64),
    }


def unpack_trees(name: str, arrays: dict[str, NDArray[np.generic]], width: int) -> list[Trees]:
    """The inverse of `pack_trees`.

    Raises:
        ValueError: A node leads out of its tree, back to itself over others, or asks for a feature beyond
            `width`: a file that was changed by hand.
    """
    own = {key: np.asarray(arrays[f"{name}.{key}"]) for key in _KEYS}
    roots_at = np.cumsum([0, *own["trees"].tolist()])
    nodes_at = np.cumsum([0, *own["nodes"].tolist()])
    lengths = {len(own[key]) for key in ("feature", "threshold", "left", "right", "value")}
    if lengths != {int(nodes_at[-1])} or len(own["roots"]) != roots_at[-1] or min(nodes_at) < 0:
        raise ValueError("its trees are cut off")
    tasks = []
    for k in range(len(own["trees"])):
        trees, nodes = slice(roots_at[k], roots_at[k + 1]), slice(nodes_at[k], nodes_at[k + 1])
        count = nodes.stop - nodes.start
        place = np.arange(count)
        left, right, feature = (own[key][nodes] for key in ("left", "right", "feature"))
        leaf = (left == place) & (right == place)
        forward = (left > place) & (right > place) & (left < count) & (right < count)
        roots = own["roots"][trees]
        if not (leaf | forward).all() or (len(roots) and not 0 <= roots.min() <= roots.max() < count):
            raise ValueError("its trees lead nowhere")
        if count and not 0 <= feature.min() <= feature.max() < width:
            raise ValueError("its trees ask for unknown features")
        tasks.append(
            Trees(
                roots, feature, own["threshold"][nodes], left, right, own["value"][nodes],
                float(own["offset"][k]), float(own["factor"][k]),
            )
        )  # fmt: skip
    return tasks


_KEYS = ("roots", "feature", "threshold", "left", "right", "value", "trees", "nodes", "offset", "factor")
