"""Embeddings in two dimensions, and maps drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.registry import require
from graphsc.evaluation.neighbours import standardise
from graphsc.report.figure import WIDTH, colour, escape_tex, marker, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ProjectionMethod = Literal["tsne", "umap", "pca"]

_KERNEL_DIMENSIONS = 64


def project(
    embeddings: NDArray[np.floating], seed: int = 0, method: ProjectionMethod = "tsne"
) -> NDArray[np.float64]:
    """Project embeddings to two dimensions, after standardising their columns.

    Args:
        embeddings: N x d.
        seed: Of the projection.
        method: t-SNE, UMAP (extra `report`) or PCA. Fewer than five rows or a single column are always
            projected by PCA, to one dimension.

    Returns:
        N x 2 positions.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    scaled = standardise(embeddings)
    if not scaled.any():
        return np.zeros((len(scaled), 2))  # all rows are equal
    if len(scaled) < 5 or scaled.shape[1] == 1:
        return np.pad(PCA(1).fit_transform(scaled), ((0, 0), (0, 1)))
    with threadpool_limits(1):  # on small data, threads wait for each other longer than they work
        if method == "pca":
            estimator = PCA(2, random_state=seed)
        elif method == "umap":
            neighbours = min(15, len(scaled) - 1)
            estimator = require("umap").UMAP(n_neighbors=neighbours, init="pca", random_state=seed, n_jobs=1)
        else:
            perplexity = min(30.0, (len(scaled) - 1) / 3)
            estimator = TSNE(2, perplexity=perplexity, init="pca", random_state=seed)
        positions: NDArray[np.float64] = np.asarray(estimator.fit_transform(scaled), np.float64)
    return positions


def kernel_pca(gram: NDArray[np.floating]) -> NDArray[np.float32]:
    """Embed graphs of which only a kernel is known, by kernel PCA.

    With all dimensions, squared distances between rows are those of the kernel: K_ii + K_jj - 2 K_ij.

    Args:
        gram: N x N kernel matrix.

    Returns:
        N x min(64, N - 1) vectors.
    """
    from sklearn.decomposition import KernelPCA

    dimensions = min(_KERNEL_DIMENSIONS, len(gram) - 1)
    solver = "auto" if len(gram) < 500 else "randomized"
    estimator = KernelPCA(dimensions, kernel="precomputed", eigen_solver=solver, random_state=0)
    return np.asarray(estimator.fit_transform(np.asarray(gram, np.float64)), np.float32)


def draw_map(positions: NDArray[np.floating], groups: Sequence[str], title: str, path: Path) -> None:
    """Write a scatter plot of N x 2 positions as PNG or SVG; each group has its colour and marker."""
    draw_maps({title: positions}, groups, path)


def draw_maps(maps: Mapping[str, NDArray[np.floating]], groups: Sequence[str], path: Path) -> None:
    """Write several maps of the same graphs, such as untrained and trained, as one PNG or SVG."""
    save_figure(map_figure(maps, groups), path)


def map_figure(maps: Mapping[str, NDArray[np.floating]], groups: Sequence[str]) -> Figure:
    """Draw maps of the same graphs side by side, two per row, with one legend.

    Args:
        maps: By title, N x 2 positions.
        groups: N names; a group has the same colour and marker in every map.
    """
    for title, positions in maps.items():
        if np.shape(positions) != (len(groups), 2):
            raise DataError(f"{title}: positions of shape {np.shape(positions)} for {len(groups)} graphs")
    if not maps:
        raise DataError("there is no map to draw")
    group_of = np.array(groups, dtype=object)
    names = sorted(set(groups))
    columns = min(2, len(maps))
    rows = -(-len(maps) // columns)
    legend_columns = 2 if max(map(len, names), default=0) > 14 else 3
    side = WIDTH / columns
    figure = new_figure(rows * (side + 0.1) + 0.25 * -(-len(names) // legend_columns) + 0.2, columns * side)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(maps) :]:
        axis.axis("off")
    for axis, (title, positions) in zip(axes, maps.items(), strict=False):
        for number, name in enumerate(names):
            members = group_of == name
            axis.scatter(
                positions[members, 0], positions[members, 1], s=28 if len(maps) == 1 else 16,
                color=colour(number), marker=marker(number), alpha=0.85, edgecolors="white", linewidths=0.4,
                label=escape_tex(f"{name} ({int(members.sum())})"),
            )  # fmt: skip
        axis.set_title(escape_tex(title), fontsize=11 if len(maps) == 1 else 10, wrap=True)
        axis.set_xticks([])
        axis.set_yticks([])
        for spine in axis.spines.values():
            spine.set_color("#CCCCCC")
    handles, labels = axes[0].get_legend_handles_labels()
    if labels:
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(legend_columns, len(names)), frameon=False
        )
    return figure
