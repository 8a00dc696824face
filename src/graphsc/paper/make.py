"""A table or figure out of stored results, as files; whatever has not run is left empty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.files import write_atomic
from graphsc.core.sheet import Sheet, csv_of
from graphsc.experiments.page import put_on_page
from graphsc.experiments.store import ResultStore
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
from graphsc.paper.recipe import Recipe, Request, expand
from graphsc.paper.tables import comparison_sheets, statistics_sheet
from graphsc.report.figure import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from graphsc.paper.gather import gather

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
            "csv": csv_of(self.sheets),
            "tex": "\n".join(sheet.latex() for sheet in self.sheets),
        }
        for ending, text in texts.items():
            write_atomic(out / f"{name}.{ending}", text)
        if self.figure is not None:
            for ending in ("png", "svg"):
                save_figure(self.figure, out / f"{name}.{ending}")
        endings = [*texts, *(["png", "svg"] if self.figure is not None else [])]
        return [out / f"{name}.{ending}" for ending in endings]

    def on_page(self, page: Path, name: str) -> bool:
        """Put it between the marks of its name on a page, its picture under `images` beside it."""
        changed = put_on_page(page, name, self._markdown(f"images/{name}.png"))
        if self.figure is not None:
            save_figure(self.figure, page.parent / "images" / f"{name}.png")
        return changed

    def _markdown(self, picture: str) -> str:
        shown = [] if self.figure is None else [f"![{self.sheets[0].title}]({picture})\n"]
        return "\n".join([*shown, *(sheet.markdown() for sheet in self.sheets)])


def make(recipe: Recipe, request: Request, results: Path) -> Made:
    """The recipe's table or figure from what is stored now."""
    if recipe.kind == "statistics":
        return Made((statistics_sheet(recipe, request.sets(recipe), results),))
    cells = expand(recipe, request)
    found = gather(cells, ResultStore(results))
    if recipe.kind == "comparison":
        return Made(tuple(comparison_sheets(recipe, cells, found)))
    sheet, figure = FIGURES[recipe.kind]
    return Made((sheet(recipe, cells, found),), figure(cells, found))
