"""The confusion matrix as a picture: true classes down, predicted classes across."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.report.figure import WIDTH, new_figure, plain
from graphsc.report.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NUMBERS = 12  # classes up to which numbers fit into their squares


def confusion_figure(matrix: NDArray[np.int64], classes: Sequence[str]) -> Figure:
    """Draw counts, each square as dark as its share of the graphs of its true class."""
    if matrix.shape != (len(classes), len(classes)) or not len(classes):
        raise DataError(f"a confusion matrix of shape {matrix.shape} for {len(classes)} classes")
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    figure = new_figure(min(WIDTH, 1.6 + 0.55 * len(classes)))
    axis = figure.subplots()
    axis.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    if len(classes) <= _MOST_NUMBERS:
        for (row, column), count in np.ndenumerate(matrix):
            light = shares[row, column] > 0.55
            axis.text(column, row, f"{count:,}", ha="center", va="center", color="white" if light else INK)
    names = [plain(name if len(name) <= 14 else name[:13] + "…") for name in classes]
    turned = max(map(len, names)) * len(names) > 40
    axis.set_xticks(range(len(names)), names, fontsize=9, rotation=90 if turned else 0)
    axis.set_yticks(range(len(names)), names, fontsize=9)
    axis.tick_params(length=0)
    axis.set_xlabel("predicted", fontsize=10)
    axis.set_ylabel("true", fontsize=10)
    for spine in axis.spines.values():
        spine.set_color("#CCCCCC")
    return figure
