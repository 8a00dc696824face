"""The explorer's file: complete, escaped, self-contained; and the columns to colour by."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from explorers import IDS, POSITIONS, explorer

from graphsc.core.errors import DataError
from graphsc.report.drawings import pack
from graphsc.report.explorer import (
    by_cell,
    by_name,
    by_number,
    colourings_of,
    edge_counts,
    render_explorer,
    script_json,
    write_explorer,
)

HOSTILE = """</script><script>alert(1)</script>"><img src=https://evil.example onerror='x()'>"""
HOSTILE += "<!--{{ 7*7 }}\u2028&amp;"


class Page(HTMLParser):
    """Elements with their attributes, and the text of each, up to the next tag."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.last = [], {}, ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        self.last = tag

    def handle_endtag(self, tag):
        self.last = ""

    def handle_data(self, data):
        if self.last:
            self.texts[self.last][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def data(self):
        return json.loads(self.texts["script"][0])


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_the_data_are_in_the_file():
    data = Page(render_explorer(explorer())).data()
    assert data["ids"] == IDS
    np.testing.assert_allclose(unpacked(data["places"], "<f4").reshape(-1, 2), POSITIONS / 10)
    assert unpacked(data["neighbours"], "<u4").reshape(-1, data["k"]).tolist()[0] == [1, 2]
    assert unpacked(data["drawings"]["nodes"], "<u4").tolist() == [5, 6, 3, 4, 7, 0]
    kind, nodes = data["colourings"]
    assert [kind["names"][code] for code in unpacked(kind["codes"], "<u2")] == ["a", "b", "b", "a", "a", "b"]
    assert unpacked(nodes["numbers"], "<f4").tolist() == [5, 6, 3, 4, 7, 200]


def hostile():
    titles = [by_name(HOSTILE, [HOSTILE] * 6), by_number(f"n{HOSTILE}", np.zeros(6))]
    return explorer(ids=[HOSTILE] * 6, title=HOSTILE, notes=[HOSTILE], colourings=titles)


def test_hostile_text_never_becomes_an_element():
    harmless, other = Page(render_explorer(explorer())), Page(render_explorer(hostile()))
    shape = [(name, set(attributes)) for name, attributes in other.elements]
    assert shape == [(name, set(attributes)) for name, attributes in harmless.elements]


def test_hostile_text_is_kept_as_data():
    data = Page(render_explorer(hostile())).data()
    assert data["title"] == data["ids"][0] == data["colourings"][0]["names"][0] == HOSTILE


def test_json_ends_neither_its_script_element_nor_a_line():
    text = script_json({"a": HOSTILE})
    assert not re.search(r"[<>&\u2028\u2029]", text)
    assert json.loads(text) == {"a": HOSTILE}


def test_the_policy_allows_only_the_file_s_own_script_and_style():
    page = Page(render_explorer(hostile()))
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]

    def digest(text):
        return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert policy.split("; ") == [
        "default-src 'none'", f"script-src '{digest(page.texts['script'][1])}'",
        f"style-src '{digest(page.texts['style'][0])}'", "img-src data:", "base-uri 'none'",
        "form-action 'none'",
    ]  # fmt: skip


def test_nothing_is_fetched_and_the_markup_has_no_event_handlers():
    page = Page(render_explorer(hostile()))
    for _, attributes in page.elements:
        assert not {"src", "href", "srcset", "action", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    script, style = page.texts["script"][1], page.texts["style"][0]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(", script
    )
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|WebSocket|import\(|\burl\(|@import", script + style)


def test_integers_beyond_the_exact_range_of_javascript_become_text():
    data = Page(render_explorer(explorer(ids=[1, 2, 3, 4, 5, 2**60]))).data()
    assert data["ids"] == [1, 2, 3, 4, 5, str(2**60)]


def test_a_user_s_own_svg_drawings_are_in_the_file():
    svgs = pack(["<svg>é</svg>", *[None] * 5])
    data = Page(render_explorer(explorer(drawings=svgs))).data()
    assert base64.b64decode(data["drawings"]["svgs"]["0"]).decode() == "<svg>é</svg>"


def test_an_id_that_is_invalid_unicode_does_not_fail_the_explorer(tmp_path):
    write_explorer(tmp_path / "a" / "explore.html", explorer(ids=["\ud800", *IDS[1:]]))
    assert (tmp_path / "a" / "explore.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    "changes",
    [
        {"positions": POSITIONS[:5]},
        {"positions": np.where(POSITIONS == 5, np.nan, POSITIONS)},
        {"distances": np.zeros((6, 3))},
        {"colourings": [by_number("n", np.zeros(5))]},
        {"sizes": np.zeros((6, 1), int)},
    ],
)
def test_arrays_of_other_shapes_are_refused(changes):
    with pytest.raises(DataError):
        render_explorer(explorer(**changes))


def values_of(colouring):
    if colouring.codes is not None:
        return [colouring.names[code] for code in colouring.codes]
    return colouring.numbers.tolist()


def test_colourings_are_labels_sizes_and_means_of_attributes(mixed):
    data = {colouring.title: values_of(colouring) for colouring in colourings_of(mixed)}
    assert list(data) == [
        "energy", "toxic", "nodes", "edges", "mean degree", "mean charge of nodes", "mean mass of nodes",
    ]  # fmt: skip
    assert data["nodes"] == [3, 0, 2, 4, 1]
    np.testing.assert_allclose(data["mean mass of nodes"], [-1, np.nan, -3.5, -6.5, -9])


def test_missing_labels_are_a_class_of_their_own(make):
    labels = np.array([[1.0], [np.nan], [0.0]])
    collection = make([(1, []), (1, []), (1, [])], labels=labels, tasks=["t"], classes={"t": ("no", "yes")})
    assert values_of(colourings_of(collection)[0]) == ["yes", "(missing)", "no"]
    numbered = make([(1, []), (1, []), (1, [])], labels=np.array([[10.0], [np.nan], [9.0]]), tasks=["t"])
    assert colourings_of(numbered)[0].names == ("9", "10", "(missing)")


def test_labels_with_fractions_are_numbers(make):
    collection = make([(1, []), (1, [])], labels=np.array([[0.5], [np.nan]]), tasks=["t"])
    np.testing.assert_array_equal(colourings_of(collection)[0].numbers, np.array([0.5, np.nan], np.float32))


def test_undirected_edges_count_once(three):
    assert edge_counts(three).tolist() == [3, 1, 0]


def test_a_column_of_cells_is_numeric_if_all_its_cells_are():
    np.testing.assert_array_equal(
        by_cell("a", ["1", "", "2.5"]).numbers, np.array([1, np.nan, 2.5], np.float32)
    )
    assert values_of(by_cell("a", ["1", "", "x"])) == ["1", "(missing)", "x"]
