"""Figure 3: accuracy from epoch to epoch, and how many epochs it takes to come near its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.experiments.reproduce.expand import Cell
from graphsc.experiments.reproduce.gather import Found, missing, set_of, sets_of, words_of
from graphsc.experiments.reproduce.recipe import Recipe
from graphsc.experiments.reproduce.sheet import Entry, Sheet
from graphsc.report.panels import Line, line_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEAR = 0.5  # points from its end within which a curve counts as there
TAIL = 5  # probed epochs whose mean is the end, because single epochs jump


@dataclass(frozen=True)
class Converged:
    """A mean curve over seeds, in per cent."""

    epochs: NDArray[np.int64]
    accuracy: NDArray[np.float64]  # seeds x epochs
    mean: NDArray[np.float64]

    @property
    def end(self) -> float:
        return float(self.mean[-TAIL:].mean())

    @property
    def gain(self) -> float:
        """What training brought: the end minus the untrained encoder."""
        return self.end - float(self.mean[0])

    @property
    def near(self) -> int:
        """The first probed epoch at which the accuracy is no more than half a point below its end."""
        return int(self.epochs[np.flatnonzero(self.mean >= self.end - NEAR)[0]])

    @property
    def stays(self) -> int:
        """The first probed epoch from which on it never is more than half a point below its end again."""
        below = np.flatnonzero(self.mean < self.end - NEAR)
        return int(self.epochs[0 if not below.size else min(below[-1] + 1, len(self.epochs) - 1)])


def curve_of(found: Sequence[Found], data: str, method: str) -> Converged | None:
    """The curves of all seeds together; None where none has run."""
    curves = [
        one.result.curve
        for one in found
        if one.result.curve is not None and (set_of(one.cell), one.cell.trial.method) == (data, method)
    ]
    if not curves:
        return None
    epochs = np.array(curves[0].epochs)
    table = 100 * np.stack([curve.accuracy for curve in curves if curve.epochs == curves[0].epochs])
    return Converged(epochs, table, table.mean(axis=0))


def convergence_sheet(recipe: Recipe, cells: Sequence[Cell], found: Sequence[Found]) -> Sheet:
    """A row a method and data set: where it begins and ends, and the epochs in between."""
    rows, records = [], []
    for data in sets_of(cells):
        for method in _methods(cells):
            curve = curve_of(found, data, method)
            texts = ["", "", "", "", ""]
            if curve is not None:
                seeds = len(curve.accuracy)
                texts = [
                    f"{curve.mean[0]:.2f}",
                    f"{curve.end:.2f}",
                    f"{curve.near}",
                    f"{curve.stays}",
                    f"{seeds}",
                ]
                records += [
                    (data, method, int(epoch), round(float(mean), 4),
                     round(float(curve.accuracy[:, k].std()), 4) if seeds > 1 else "", seeds)
                    for k, (epoch, mean) in enumerate(zip(curve.epochs, curve.mean, strict=True))
                ]  # fmt: skip
            rows.append((f"{method}, {data}", tuple(Entry(text) for text in texts)))
    notes = (
        missing(cells, found),
        f"The end is the mean of the last {TAIL} probed epochs. *Comes near* is the first probed epoch no "
        f"more than {NEAR:g} points below the end; *stays near* the one from which on it never falls below "
        "that again. 0: the encoder is there before it has learned anything.",
        *words_of(found),
        *recipe.notes,
    )
    return Sheet(
        title=recipe.title,
        heads=("curve", "untrained", "end", "comes near", "stays near", "seeds"),
        rows=tuple(rows),
        notes=tuple(note for note in notes if note),
        record_heads=("data", "method", "epoch", "accuracy", "deviation", "seeds"),
        records=tuple(records),
    )


def convergence_figure(cells: Sequence[Cell], found: Sequence[Found]) -> Figure:
    """A panel a data set; a ring where a curve comes near its end."""
    panels: dict[str, dict[str, Line]] = {}
    for data in sets_of(cells):
        lines = {}
        for method in _methods(cells):
            curve = curve_of(found, data, method)
            if curve is None:
                lines[method] = Line(np.array([0.0]), np.full((1, 1), np.nan))
            else:
                lines[method] = Line(curve.epochs.astype(float), curve.accuracy, float(curve.near))
        panels[data] = lines
    label = f"comes within {NEAR:g} points of its end"
    return line_panels(panels, x_label="epoch", band=True, mark_label=label)


def _methods(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.trial.method for cell in cells))
