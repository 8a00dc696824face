"""Figures, graph drawings, the HTML report and the explorer, made from arrays and collections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.report.critical_difference import critical_difference_diagram as critical_difference_diagram
    from graphsc.report.drawings import draw_graphs as draw_graphs
    from graphsc.report.explorer import Explorer as Explorer
    from graphsc.report.explorer import write_explorer as write_explorer
    from graphsc.report.html import Report as Report
    from graphsc.report.html import write_report as write_report
    from graphsc.report.molecules import draw_smiles as draw_smiles
    from graphsc.report.projection import map_figure as map_figure
    from graphsc.report.projection import project as project

__all__ = export_lazily(
    __name__,
    {
        "critical_difference": "critical_difference_diagram",
        "drawings": "draw_graphs",
        "explorer": "Explorer write_explorer",
        "html": "Report write_report",
        "molecules": "draw_smiles",
        "projection": "map_figure project",
    },
)
