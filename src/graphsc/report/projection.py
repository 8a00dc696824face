"""A map of embeddings: similar graphs near each other, coloured by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.registry import require
from graphsc.report.figure import WIDTH, colour, marker, new_figure, plain, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Way = Literal["tsne", "umap", "pca"]


def flatten(embeddings: NDArray[np.floating], seed: int = 0, way: Way = "tsne") -> NDArray[np.float64]:
    """Two coordinates a row, of standardised columns: by t-SNE, by UMAP (extra `report`) or by PCA.

    Below five rows it is always PCA, in one direction.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    scaled = standardised(embeddings)
    if not scaled.any():
        return np.zeros((len(scaled), 2))  # all the same: one place
    if len(scaled) < 5 or scaled.shape[1] == 1:
        return np.pad(PCA(1).fit_transform(scaled), ((0, 0), (0, 1)))
    with threadpool_limits(1):  # on small data its threads wait for each other longer than they work
        if way == "pca":
            method = PCA(2, random_state=seed)
        elif way == "umap":
            neighbours = min(15, len(scaled) - 1)
            method = require("umap").UMAP(n_neighbors=neighbours, init="pca", random_state=seed, n_jobs=1)
        else:
            perplexity = min(30.0, (len(scaled) - 1) / 3)
            method = TSNE(2, perplexity=perplexity, init="pca", random_state=seed)
        places: NDArray[np.float64] = np.asarray(method.fit_transform(scaled), np.float64)
    return places


def standardised(embeddings: NDArray[np.floating]) -> NDArray[np.floating]:
    """Columns of mean 0 and deviation 1; those that are all the same become 0."""
    deviation = embeddings.std(axis=0)
    scaled: NDArray[np.floating] = (embeddings - embeddings.mean(axis=0)) / np.where(
        deviation > 0, deviation, 1
    )
    return scaled


def draw_map(places: NDArray[np.floating], groups: Sequence[str], title: str, path: Path) -> None:
    """Scatter the places into one PNG or SVG, a colour and a shape for each group."""
    draw_maps({title: places}, groups, path)


def draw_maps(maps: Mapping[str, NDArray[np.floating]], groups: Sequence[str], path: Path) -> None:
    """Draw several maps of the same graphs, such as untrained and trained, into one PNG or SVG."""
    save_figure(map_figure(maps, groups), path)


def map_figure(maps: Mapping[str, NDArray[np.floating]], groups: Sequence[str]) -> Figure:
    """Lay maps of the same graphs side by side, two a row, with one legend.

    maps: by title, N x 2 places each. groups: N names; a group has the same colour and shape in every map.
    """
    for title, places in maps.items():
        if np.shape(places) != (len(groups), 2):
            raise DataError(f"{title}: places of shape {np.shape(places)} for {len(groups)} graphs")
    if not maps:
        raise DataError("there is no map to draw")
    names = np.array(groups, dtype=object)
    kinds = sorted(set(groups))
    columns = min(2, len(maps))
    rows = -(-len(maps) // columns)
    legend_columns = 2 if max(map(len, kinds), default=0) > 14 else 3
    side = WIDTH / columns
    figure = new_figure(rows * (side + 0.1) + 0.25 * -(-len(kinds) // legend_columns) + 0.2, columns * side)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(maps) :]:
        axis.axis("off")
    for axis, (title, places) in zip(axes, maps.items(), strict=False):
        for number, name in enumerate(kinds):
            chosen = names == name
            axis.scatter(
                places[chosen, 0], places[chosen, 1], s=28 if len(maps) == 1 else 16, color=colour(number),
                marker=marker(number), alpha=0.85, edgecolors="white", linewidths=0.4,
                label=plain(f"{name} ({int(chosen.sum())})"),
            )  # fmt: skip
        axis.set_title(plain(title), fontsize=11 if len(maps) == 1 else 10, wrap=True)
        axis.set_xticks([])
        axis.set_yticks([])
        for spine in axis.spines.values():
            spine.set_color("#CCCCCC")
    handles, labels = axes[0].get_legend_handles_labels()
    if labels:
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(legend_columns, len(kinds)), frameon=False
        )
    return figure


# Vectors for graphs of which only a kernel is known.


DIMENSIONS = 64


def vectors_of_gram(gram: NDArray[np.floating]) -> NDArray[np.float32]:
    """The leading directions of the centred kernel (kernel PCA), N x 64 at most.

    With all directions, distances between the rows are those that the kernel means:
    |v_i - v_j|^2 = K_ii + K_jj - 2 K_ij.
    """
    from sklearn.decomposition import KernelPCA

    kept = min(DIMENSIONS, len(gram) - 1)
    solver = "auto" if len(gram) < 500 else "randomized"
    rows = KernelPCA(kept, kernel="precomputed", eigen_solver=solver, random_state=0).fit_transform(
        np.asarray(gram, np.float64)
    )
    return np.asarray(rows, np.float32)


# Which graphs are alike: the nearest rows of each row, all pairs looked at.


_ROWS = 1_000  # whose distances to all others are held at a time


def nearest(embeddings: NDArray[np.floating], k: int = 8) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """The k nearest other rows of each row, nearest first, and their distances; N x min(k, N - 1) both.

    Distances are Euclidean between standardised columns, as for the map.
    """
    rows = standardised(embeddings).astype(np.float64)
    k = min(k, len(rows) - 1)
    square = (rows**2).sum(axis=1)
    index = np.zeros((len(rows), k), np.uint32)
    distance = np.zeros((len(rows), k), np.float32)
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        apart = square[start : start + _ROWS, None] + square - 2 * part @ rows.T
        apart[np.arange(len(part)), start + np.arange(len(part))] = np.inf
        # A few more than k by the quick formula, which rounds, then those by their differences.
        some = np.sort(np.argpartition(apart, min(k + 8, len(rows) - 1), axis=1)[:, : k + 8], axis=1)
        exact = np.sqrt(((part[:, None, :] - rows[some]) ** 2).sum(axis=2))
        exact[some == start + np.arange(len(part))[:, None]] = np.inf
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        index[start : start + _ROWS] = np.take_along_axis(some, order, axis=1)
        distance[start : start + _ROWS] = np.take_along_axis(exact, order, axis=1)
    return index, distance
