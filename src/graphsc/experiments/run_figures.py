"""What one run looks like: its maps before and after training, its curves, its health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphsc.core.random import numpy_generator
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.experiments.judge import rows_by_epoch
from graphsc.report.curves import HEALTH, health_curves, loss_curves
from graphsc.report.figure import svg_of
from graphsc.report.html import ReportFigure
from graphsc.report.projection import kernel_pca, map_figure, project
from graphsc.training.callbacks import Metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 4_000  # graphs on a printed map; more only cover each other


def as_figure(title: str, figure: Figure, caption: str) -> ReportFigure:
    return ReportFigure(title, svg_of(figure), caption)


def metrics_of(folder: RunFolder) -> list[dict[str, float]]:
    """Every row of the run's metrics; none where it did not train."""
    return Metrics(folder.metrics, keep=10**9).rows


def map_before_and_after(
    folder: RunFolder, collection: GraphCollection, groups: Sequence[str]
) -> ReportFigure:
    """The same graphs by the first and by the last vectors that were kept, coloured by group."""
    by_epoch, gram = rows_by_epoch(folder, collection)
    kept = np.arange(len(groups))
    caption = "t-SNE of the same graphs before and after training. Training saw no class."
    if len(by_epoch) == 1:
        caption = "t-SNE of the graphs. There is no before and after: nothing was trained epoch by epoch."
    if len(kept) > MOST:
        kept = np.sort(numpy_generator(0, "sample of a map").permutation(len(groups))[:MOST])
        caption += f" A random sample of {MOST:,} of {len(groups):,} graphs."
    places = {}
    for epoch in dict.fromkeys((min(by_epoch), max(by_epoch))):
        rows = kernel_pca(by_epoch[epoch]) if gram else by_epoch[epoch]
        title = f"after {epoch} epochs" if epoch else "untrained" if len(by_epoch) > 1 else "vectors"
        places[title] = project(rows[kept])
    return as_figure(
        "Maps of the graphs", map_figure(places, [groups[index] for index in kept.tolist()]), caption
    )


def training_figures(folder: RunFolder, name: str) -> list[ReportFigure]:
    """Loss and health from epoch to epoch; none where nothing was trained."""
    rows = metrics_of(folder)
    if not rows:
        return []
    found = [as_figure("Loss", loss_curves(rows), f"{name}: the loss and its weighted parts.")]
    if any(key in row for row in rows for key, _, _ in HEALTH):
        caption = f"{name}. A rank near 1 would mean that the vectors have collapsed."
        found.append(as_figure("Health of the representation", health_curves(rows), caption))
    return found


def health_facts(rows: Sequence[dict[str, float]]) -> dict[str, str]:
    """Health at the last epoch, in words; empty where nothing was trained."""
    last = rows[-1] if rows else {}
    facts = {}
    if "effective_rank" in last:
        facts["effective rank"] = f"{last['effective_rank']:.1f} of {last['dimensions']:.0f} dimensions"
    for key in ("uniformity", "alignment", "mean_cosine"):
        if key in last:
            facts[key.replace("_", " ")] = f"{last[key]:.2f}"
    return facts
