"""A map of embeddings: similar graphs near each other, coloured by class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.report.style import colour, marker


def flatten(embeddings: NDArray[np.floating], seed: int = 0) -> NDArray[np.float64]:
    """Two coordinates a row, by t-SNE on standardised columns (PCA below five rows)."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    deviation = embeddings.std(axis=0)
    scaled = (embeddings - embeddings.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    if not scaled.any():
        return np.zeros((len(scaled), 2))  # all the same: one place
    if len(scaled) < 5:
        return np.pad(PCA(1).fit_transform(scaled), ((0, 0), (0, 1)))
    perplexity = min(30.0, (len(scaled) - 1) / 3)
    with threadpool_limits(1):  # on small data its threads wait for each other longer than they work
        places: NDArray[np.float64] = TSNE(
            2, perplexity=perplexity, init="pca", random_state=seed
        ).fit_transform(scaled)
    return places


def draw_map(places: NDArray[np.floating], groups: Sequence[str], title: str, path: Path) -> None:
    """Scatter the places into one PNG, a colour and a shape for each group."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    axis = figure.subplots()
    names = np.array(groups)
    for number, name in enumerate(dict.fromkeys(sorted(groups))):
        chosen = names == name
        axis.scatter(
            places[chosen, 0], places[chosen, 1], s=28, color=colour(number), marker=marker(number),
            alpha=0.85, edgecolors="white", linewidths=0.4, label=f"{name} ({int(chosen.sum())})",
        )  # fmt: skip
    axis.set_title(title, fontsize=11)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.legend(frameon=False)
    for side in axis.spines.values():
        side.set_color("#CCCCCC")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
