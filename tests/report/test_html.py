"""The HTML report: complete, escaped, self-contained, and readable on a phone."""

import base64
import dataclasses
import hashlib
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.charts import accuracy_bars
from graphsc.report.figure import svg_of
from graphsc.report.html import (
    Report,
    ReportCard,
    ReportFigure,
    ReportGallery,
    ReportTable,
    ReportVerdict,
    ResultRow,
    format_p_value,
    percent,
    render_report,
    signed,
    write_report,
)

HOSTILE = """<script>alert(1)</script>"><img src=https://evil.example onerror='x()'></style></pre>{{ 7*7 }}"""
DASH = "\N{EN DASH}"
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Elements with their attributes, the text under each kind of element, and whether all were closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], {}, []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag):
        return "".join(self.texts.get(tag, []))


def figure_text():
    return svg_of(accuracy_bars({"untrained": [0.84, 0.85], "GraphSC": [0.86, 0.88]}, untrained=0.845))


def report(**changes):
    rows = [
        ResultRow(method="untrained", mean=0.845, over_seeds=0.005, over_folds=0.06),
        ResultRow(
            method="GraphSC", mean=0.8712, over_seeds=0.0104, over_folds=0.058, difference=0.0262,
            p_value=0.012, published=0.894,
        ),
        ResultRow(method="GraphCL", mean=0.84, over_seeds=0.01, difference=-0.005, p_value=0.4),
        ResultRow(method="WL", mean=0.83, difference=-0.015),
    ]  # fmt: skip
    full = Report(
        title="GraphSC on MUTAG",
        lead="GraphSC reaches 87.1 %.",
        rows=rows,
        protocol="Ten folds, five seeds.",
        figures=[ReportFigure("Accuracy", figure_text(), "Dots are seeds.")],
        health={"effective rank": "17 of 96"},
        config="method: graphsc\nepochs: 20\n",
        environment={"torch": "2.6"},
        warnings=["legacy-leaky: the epoch was chosen by test accuracy."],
    )
    return dataclasses.replace(full, **changes)


def test_all_contents_are_on_the_page():
    page = Page(render_report(report()))
    assert page.text("h1") == page.text("title") == "GraphSC on MUTAG"
    words = "".join(text for texts in page.texts.values() for text in texts)
    for text in (
        "87.1 %",
        "Ten folds, five seeds.",
        "Dots are seeds.",
        "17 of 96",
        "epochs: 20",
        "torch",
        "legacy-leaky",
    ):
        assert text in words


def test_the_table_says_whether_a_difference_is_significant():
    page = Page(render_report(report()))
    cells = [text.strip() for text in page.texts["td"] if text.strip()]
    assert cells[:11] == ["84.5", "0.5", "6.0", DASH, DASH, "87.1", "1.0", "5.8", "+2.6", "89.4", "84.0"]
    words = [text.strip() for text in page.texts["span"] if text.strip()]
    assert words == ["significant above", "(p = 0.012)", "within noise", "(p = 0.40)", "not tested"]


def test_a_method_that_is_significantly_worse_is_not_green():
    rows = [
        ResultRow(method=name, mean=0.8, difference=difference, p_value=0.01)
        for name, difference in (("up", 0.05), ("down", -0.05))
    ]
    text = render_report(dataclasses.replace(report(), rows=rows))
    assert text.count('class="significant">significant above') == 1
    assert text.count('class="worse">significant below') == 1


def test_headers_of_the_table_have_a_scope():
    page = Page(render_report(report()))
    scopes = [attributes.get("scope") for attributes in page.all("th")]
    assert scopes == ["col"] * 6 + ["row"] * 4


def test_the_figure_is_embedded_with_an_alternative_text():
    (image,) = Page(render_report(report())).all("img")
    kind, _, content = image["src"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(content).decode() == figure_text()
    assert image["alt"] == "Accuracy"


def filled_with(text):
    row = ResultRow(method=text, mean=0.5, difference=0.1, p_value=0.5)
    return Report(
        title=text, lead=text, rows=[row], protocol=text,
        figures=[ReportFigure(text, f"<svg>{text}</svg>", text)],
        galleries=[ReportGallery(text, [ReportCard(text, {text: text}, f"<svg>{text}</svg>")], text)],
        health={text: text}, config=text, environment={text: text}, warnings=[text],
        verdict=ReportVerdict("even", text, [text], ReportTable(text, [text], [[text]], text),
                              ReportFigure(text, f"<svg>{text}</svg>")),
    )  # fmt: skip


def test_hostile_text_never_becomes_an_element():
    harmless, hostile = Page(render_report(filled_with("x"))), Page(render_report(filled_with(HOSTILE)))
    assert hostile.all("script") == []
    shape = [(name, set(attributes)) for name, attributes in hostile.elements]
    assert shape == [(name, set(attributes)) for name, attributes in harmless.elements]


def test_hostile_text_is_shown_as_text():
    page = Page(render_report(filled_with(HOSTILE)))
    for tag in ("h1", "title", "h3", "pre", "dt", "dd", "th", "code"):
        assert HOSTILE in page.text(tag), tag


def test_nothing_is_fetched_from_elsewhere():
    page = Page(render_report(filled_with(HOSTILE)))
    for _, attributes in page.elements:
        assert not {"srcset", "action", "data", "poster"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")
        assert attributes.get("src", "data:").startswith("data:")
    assert "http://" not in render_report(report())
    assert "https://" not in render_report(report())
    assert "url(" not in page.text("style")
    assert "@import" not in page.text("style")


def test_the_policy_allows_only_embedded_images_and_the_file_s_own_style():
    page = Page(render_report(report()))
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    digest = base64.b64encode(hashlib.sha256(page.text("style").encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'", f"style-src 'sha256-{digest}'", "img-src data:", "base-uri 'none'",
        "form-action 'none'",
    ]  # fmt: skip


def test_every_entry_of_the_contents_leads_to_a_section():
    page = Page(render_report(filled_with("x")))
    links = [attributes["href"].removeprefix("#") for attributes in page.all("a")]
    sections = {attributes["aria-labelledby"] for attributes in page.all("section")}
    assert sections - set(links) == {"verdict"}  # which is above the contents
    assert set(links) <= {attributes.get("id") for _, attributes in page.elements}


def test_a_verdict_takes_the_place_of_the_lead():
    box = ReportVerdict("bad", "A simple model is better", ["One.", "Two."])
    page = Page(render_report(Report(title="t", lead="the lead", verdict=box)))
    assert "the lead" not in page.text("p")
    assert page.text("p") == "One.Two."
    assert page.all("section")[0]["class"] == "verdict bad"


def test_an_empty_report_has_no_empty_sections():
    page = Page(render_report(Report(title="t", lead="l")))
    assert page.all("section") == []


def test_a_figure_that_is_not_svg_is_refused():
    with pytest.raises(DataError, match="'Map' is not SVG"):
        render_report(report(figures=[ReportFigure("Map", "PNG")]))


def test_invalid_unicode_does_not_fail_the_report(tmp_path):
    write_report(tmp_path / "a" / "report.html", report(lead="broken \ud800 name"))
    assert "broken ? name" in (tmp_path / "a" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("share", "text"), [(0.8712, "87.1"), (1.0, "100.0"), (None, DASH), (np.nan, DASH)])
def test_shares_are_shown_in_per_cent(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.0123, "+1.2"), (-0.0123, "\N{MINUS SIGN}1.2"), (-0.0001, "0.0"), (0.0, "0.0")]
)
def test_differences_have_a_sign_unless_they_round_to_zero(share, text):
    assert signed(share) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0004, "p < 0.001"), (0.049, "p = 0.049"), (0.312, "p = 0.31"), (None, ""), (np.nan, "")],
)
def test_p_values_are_shown_as_in_running_text(p, text):
    assert format_p_value(p) == text


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize(("scheme", "background"), [(1, (0xF6, 0xF7, 0xF9)), (0, (0x14, 0x17, 0x1C))])
def test_nothing_overflows_on_a_phone(tmp_path, scheme, background):
    """The page's own background, light or dark, shows along the right edge from top to bottom."""
    from PIL import Image

    write_report(tmp_path / "report.html", report(environment={"processor": "x" * 200}))
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--window-size=390,1500", f"--user-data-dir={tmp_path / 'profile'}",
        f"--blink-settings=preferredColorScheme={scheme}",
        f"--screenshot={tmp_path / 'page.png'}", (tmp_path / "report.html").as_uri(),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    picture = np.asarray(Image.open(tmp_path / "page.png").convert("RGB"))
    assert picture.shape[1] == 390
    assert (picture[:, -8:] == background).all()
    assert not (picture[:, 20:-20] == background).all()
