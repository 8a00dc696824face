"""Makes a table or figure of the paper from stored results, as files or on a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.files import write_atomic
from graphsc.core.tables import csv_text
from graphsc.experiments.result import ResultStore
from graphsc.paper.figures import (
    convergence_figure,
    convergence_sheet,
    negatives_figure,
    negatives_sheet,
    rates_figure,
    rates_sheet,
    weights_figure,
    weights_sheet,
)
from graphsc.paper.gather import Sheet, gather
from graphsc.paper.pages import write_part
from graphsc.paper.recipe import AnyRecipe, Request, TransferRecipe, requested_tables
from graphsc.paper.tables import comparison_sheets, statistics_sheet, transfer_sheets
from graphsc.report.figure import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {
    "negatives": (negatives_sheet, negatives_figure),
    "convergence": (convergence_sheet, convergence_figure),
    "rates": (rates_sheet, rates_figure),
    "weights": (weights_sheet, weights_figure),
}


@dataclass(frozen=True)
class Output:
    """The sheets of a table or figure, and the drawing of a figure."""

    sheets: tuple[Sheet, ...]
    figure: Figure | None = None

    def write(self, out: Path, name: str) -> list[Path]:
        """Write NAME.md, .csv and .tex, and for figures NAME.png and .svg; returns the paths."""
        out.mkdir(parents=True, exist_ok=True)
        texts = {
            "md": self._markdown(f"{name}.png"),
            "csv": self.csv(),
            "tex": "\n".join(sheet.table.latex() for sheet in self.sheets),
        }
        paths = [out / f"{name}.{ending}" for ending in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            write_atomic(path, text)
        if self.figure is not None:
            for ending in ("png", "svg"):
                paths.append(out / f"{name}.{ending}")
                save_figure(self.figure, paths[-1])
        return paths

    def csv(self) -> str:
        """The records of all sheets, which have the same columns, as one table."""
        rows = [row for sheet in self.sheets for row in sheet.records.rows]
        return csv_text(self.sheets[0].records.columns, rows)

    def write_to_page(self, page: Path, name: str) -> bool:
        """Replace the part of this name on a page, with the drawing under `images` beside the page.

        Returns:
            Whether the page changed.
        """
        changed = write_part(page, name, self._markdown(f"images/{name}.png"))
        if self.figure is not None:
            save_figure(self.figure, page.parent / "images" / f"{name}.png")
        return changed

    def _markdown(self, picture: str) -> str:
        image = [] if self.figure is None else [f"![{self.sheets[0].table.title}]({picture})\n"]
        return "\n".join([*image, *(sheet.table.markdown() for sheet in self.sheets)])


def make(recipe: AnyRecipe, request: Request, results: Path) -> Output:
    """The table or figure of a recipe, with empty cells for trials that have not run.

    Args:
        recipe: What to make.
        request: Which data sets, methods and seeds.
        results: Folder of stored results.
    """
    store = ResultStore(results)
    if isinstance(recipe, TransferRecipe):
        return Output(tuple(transfer_sheets(recipe, requested_tables(recipe, request), store)))
    if recipe.kind == "statistics":
        return Output((statistics_sheet(recipe, request.sets(recipe), results),))
    stored = gather(recipe, request, store)
    if recipe.kind == "comparison":
        return Output(tuple(comparison_sheets(stored)))
    sheet, figure = FIGURES[recipe.kind]
    return Output((sheet(stored),), figure(stored))
