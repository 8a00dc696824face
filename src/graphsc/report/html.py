"""One HTML file that holds a whole result: readable on a phone, without a network, without scripts.

Every text is escaped. Figures are images inside the file, and what an SVG brings along cannot run inside an
image; the file's own policy forbids scripts and every request to elsewhere on top of that.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphsc.core.errors import DataError
from graphsc.core.files import write_atomic
from graphsc.evaluation.significance import verdict

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """A method in the table. Accuracies, deviations and differences are shares between 0 and 1.

    The deviations are over seeds and, within a run, over folds. `difference` is to the untrained encoder,
    `p_value` that of its test. `published` is the number in the method's own paper.
    """

    method: str
    mean: float
    over_seeds: float | None = None
    over_folds: float | None = None
    difference: float | None = None
    p_value: float | None = None
    published: float | None = None

    @property
    def verdict(self) -> str:
        """Say in a word what the difference is worth."""
        return verdict(np.nan if self.p_value is None else self.p_value)


@dataclass(frozen=True)
class ReportFigure:
    """A figure as SVG text, with a title that also stands in for it where it cannot be seen."""

    title: str
    svg: str
    caption: str = ""


@dataclass(frozen=True)
class ReportTable:
    """A table of texts: the first column names the row, the others are numbers."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class ReportCard:
    """One thing to look at: its name, what is known of it, and a picture as SVG text where there is one."""

    name: str
    facts: Mapping[str, str]
    svg: str = ""


@dataclass(frozen=True)
class ReportGallery:
    """Cards side by side, as many in a row as fit."""

    title: str
    cards: Sequence[ReportCard]
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a report says, as plain data.

    `lead` is one sentence with the result, `protocol` how it was measured, in words. `about`, `health` and
    `environment` are facts by name, `config` is YAML, `warnings` are shown as banners before all else,
    `notes` say what is not here and why. `parts` are reports inside this one, each under its own heading.
    """

    title: str
    lead: str
    about: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[ResultRow] = ()
    protocol: str = ""
    figures: Sequence[ReportFigure] = ()
    tables: Sequence[ReportTable] = ()
    galleries: Sequence[ReportGallery] = ()
    health: Mapping[str, str] = field(default_factory=dict)
    config: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    parts: Sequence[Report] = ()


def write_report(path: str | Path, report: Report) -> None:
    """Write the report as one HTML file; folders are made."""
    # A name with half a character in it must not cost the whole report.
    write_atomic(path, render_report(report).encode("utf-8", "replace"))


def render_report(report: Report) -> str:
    """Return the report as the text of an HTML file."""
    _check_figures(report)
    style = files("graphsc.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    return (
        templates()
        .get_template("report.html.jinja")
        .render(report=report, style=style, style_hash=digest(style))
    )


def _check_figures(report: Report) -> None:
    for figure in report.figures:
        if "<svg" not in figure.svg:
            raise DataError(f"the figure {figure.title!r} is not SVG", hint="give the text of an SVG file")
    for card in (card for gallery in report.galleries for card in gallery.cards):
        if card.svg and "<svg" not in card.svg:
            raise DataError(f"the picture of {card.name!r} is not SVG", hint="give the text of an SVG file")
    for part in report.parts:
        _check_figures(part)


def templates() -> Environment:
    """Templates as all our pages use them: every text escaped, an unknown name an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("graphsc.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"percent": percent, "signed": signed, "chance": chance, "data_uri": _data_uri}
    return found


def percent(share: float | None) -> str:
    """Write a share in per cent with one decimal; a dash where there is none."""
    return "\N{EN DASH}" if share is None or np.isnan(share) else f"{100 * share:.1f}"


def signed(share: float) -> str:
    """Write a difference of shares in points, with its sign; what rounds to zero has none."""
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "\N{MINUS SIGN}")


def chance(p_value: float | None) -> str:
    """Write a p-value as one reads it aloud; nothing where there is none."""
    if p_value is None or np.isnan(p_value):
        return ""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8", "replace")).decode()


def digest(text: str) -> str:
    """What the policy must name for the page's own style or script to be allowed, and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
