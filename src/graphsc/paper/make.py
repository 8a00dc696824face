"""A table or figure out of stored results, as files; whatever has not run is left empty."""

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
from graphsc.paper.pages import write_part
from graphsc.paper.recipe import AnyRecipe, Request, TransferRecipe, asked_of, expand
from graphsc.paper.tables import comparison_sheets, statistics_sheet, transfer_sheets
from graphsc.report.figure import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from graphsc.paper.gather import Sheet, gather

FIGURES = {
    "negatives": (negatives_sheet, negatives_figure),
    "convergence": (convergence_sheet, convergence_figure),
    "rates": (rates_sheet, rates_figure),
    "weights": (weights_sheet, weights_figure),
}


@dataclass(frozen=True)
class Made:
    """Sheets, and a picture where the recipe is of one."""

    sheets: tuple[Sheet, ...]
    figure: Figure | None = None

    def write(self, out: Path, name: str) -> list[Path]:
        """NAME.md, .csv and .tex, and .png and .svg where there is a picture."""
        out.mkdir(parents=True, exist_ok=True)
        texts = {
            "md": self._markdown(f"{name}.png"),
            "csv": self.csv(),
            "tex": "\n".join(sheet.table.latex() for sheet in self.sheets),
        }
        for ending, text in texts.items():
            write_atomic(out / f"{name}.{ending}", text)
        if self.figure is not None:
            for ending in ("png", "svg"):
                save_figure(self.figure, out / f"{name}.{ending}")
        endings = [*texts, *(["png", "svg"] if self.figure is not None else [])]
        return [out / f"{name}.{ending}" for ending in endings]

    def csv(self) -> str:
        """The records of all sheets, which have the same columns, as one table."""
        rows = [row for sheet in self.sheets for row in sheet.records.rows]
        return csv_text(self.sheets[0].records.columns, rows)

    def on_page(self, page: Path, name: str) -> bool:
        """Put it between the marks of its name on a page, its picture under `images` beside it."""
        changed = write_part(page, name, self._markdown(f"images/{name}.png"))
        if self.figure is not None:
            save_figure(self.figure, page.parent / "images" / f"{name}.png")
        return changed

    def _markdown(self, picture: str) -> str:
        shown = [] if self.figure is None else [f"![{self.sheets[0].table.title}]({picture})\n"]
        return "\n".join([*shown, *(sheet.table.markdown() for sheet in self.sheets)])


def make(recipe: AnyRecipe, request: Request, results: Path) -> Made:
    """The recipe's table or figure from what is stored now."""
    if isinstance(recipe, TransferRecipe):
        tables = asked_of(recipe, request)
        return Made(tuple(transfer_sheets(recipe, tables, ResultStore(results))))
    if recipe.kind == "statistics":
        return Made((statistics_sheet(recipe, request.sets(recipe), results),))
    cells = expand(recipe, request)
    found = gather(cells, ResultStore(results))
    if recipe.kind == "comparison":
        return Made(tuple(comparison_sheets(recipe, cells, found)))
    sheet, figure = FIGURES[recipe.kind]
    return Made((sheet(recipe, cells, found),), figure(cells, found))
