"""The HTML report: one file, readable on a phone, without scripts and without a network.

Every text is escaped. Figures are embedded as images, so that scripts inside an SVG cannot run. In addition,
the content security policy of the file forbids scripts and all requests.
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
    """One method in the table of results. Accuracies, deviations and differences are shares between 0 and 1.

    Attributes:
        over_seeds: Standard deviation over seeds.
        over_folds: Standard deviation over the folds of a run.
        difference: To the untrained encoder.
        p_value: Of the test of that difference.
        published: Accuracy in the method's paper.
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
        """Whether the difference is significant, in a word or two."""
        return verdict(np.nan if self.p_value is None else self.p_value)


@dataclass(frozen=True)
class ReportFigure:
    """A figure as SVG text; its title is also the alternative text of the image."""

    title: str
    svg: str
    caption: str = ""


@dataclass(frozen=True)
class ReportTable:
    """A table of texts. The first column names the row; the others are right-aligned."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class ReportCard:
    """An item of a gallery, such as a molecule: name, facts, and optionally a picture as SVG text."""

    name: str
    facts: Mapping[str, str]
    svg: str = ""


@dataclass(frozen=True)
class ReportGallery:
    """Cards side by side, as many per row as fit."""

    title: str
    cards: Sequence[ReportCard]
    caption: str = ""


@dataclass(frozen=True)
class ReportVerdict:
    """The box at the top of a page: what a reader should take away.

    Attributes:
        status: `good`, `even`, `bad` or `unknown`; it decides the colour.
        title: In a few words.
        sentences: A paragraph each.
        table: The numbers behind it.
        figure: The same as a picture.
    """

    status: str
    title: str
    sentences: Sequence[str]
    table: ReportTable | None = None
    figure: ReportFigure | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """The contents of a report, as plain data.

    Attributes:
        lead: One sentence with the main result.
        about: Facts on what was run.
        protocol: How results were measured.
        health: Metrics of the embeddings.
        config: The complete settings, as YAML.
        verdict: Shown first, in place of the lead.
        warnings: Shown as banners at the top.
        notes: What is missing from the page, and why.
        parts: Reports inside this one, each under its own heading.
        folded: Whether this one, as a part, is closed until its heading is clicked.
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
    verdict: ReportVerdict | None = None
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    parts: Sequence[Report] = ()
    folded: bool = False


def write_report(path: str | Path, report: Report) -> None:
    """Write the report as one HTML file; missing folders are created."""
    # "replace": a name that is not valid Unicode must not fail the whole report.
    write_atomic(path, render_report(report).encode("utf-8", "replace"))


def render_report(report: Report) -> str:
    """Return the report as HTML text.

    Raises:
        DataError: If a figure or picture is not SVG.
    """
    _check_pictures(report)
    style = files("graphsc.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    template = template_environment().get_template("report.html.jinja")
    return template.render(report=report, style=style, style_hash=csp_hash(style))


def _check_pictures(report: Report) -> None:
    verdict = [report.verdict.figure] if report.verdict and report.verdict.figure else []
    for figure in (*verdict, *report.figures):
        if "<svg" not in figure.svg:
            raise DataError(f"the figure {figure.title!r} is not SVG", hint="pass the text of an SVG file")
    for card in (card for gallery in report.galleries for card in gallery.cards):
        if card.svg and "<svg" not in card.svg:
            raise DataError(f"the picture of {card.name!r} is not SVG", hint="pass the text of an SVG file")
    for part in report.parts:
        _check_pictures(part)


def template_environment() -> Environment:
    """Return the Jinja environment of all pages: every text is escaped, an unknown name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("graphsc.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters = {"percent": percent, "signed": signed, "p_value": format_p_value, "data_uri": _data_uri}
    environment.filters |= filters
    return environment


def percent(share: float | None) -> str:
    """Format a share in per cent with one decimal; a dash where it is missing."""
    return "\N{EN DASH}" if share is None or np.isnan(share) else f"{100 * share:.1f}"


def signed(share: float) -> str:
    """Format a difference of shares in points, with its sign unless it rounds to zero."""
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "\N{MINUS SIGN}")


def format_p_value(p_value: float | None) -> str:
    """Format a p-value as in running text; empty where it is missing."""
    if p_value is None or np.isnan(p_value):
        return ""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8", "replace")).decode()


def csp_hash(text: str) -> str:
    """Return the hash by which a content security policy allows this inline style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
