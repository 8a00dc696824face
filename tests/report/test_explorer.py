"""The explorer's file: complete, escaped, self-contained."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from explorers import IDS, PLACES, explorer

from graphsc.core.errors import DataError
from graphsc.report.explorer import by_name, by_number, render_explorer, script_json, write_explorer

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
    found = Page(render_explorer(explorer())).data()
    assert found["ids"] == IDS
    np.testing.assert_allclose(unpacked(found["places"], "<f4").reshape(-1, 2), PLACES / 10)
    assert unpacked(found["neighbours"], "<u4").reshape(-1, found["k"]).tolist()[0] == [1, 2]
    assert unpacked(found["drawings"]["nodes"], "<u4").tolist() == [5, 6, 3, 4, 7, 0]
    kind, nodes = found["colourings"]
    assert [kind["names"][code] for code in unpacked(kind["codes"], "<u2")] == ["a", "b", "b", "a", "a", "b"]
    assert unpacked(nodes["numbers"], "<f4").tolist() == [5, 6, 3, 4, 7, 200]


def hostile():
    titles = [by_name(HOSTILE, [HOSTILE] * 6), by_number(f"n{HOSTILE}", np.zeros(6))]
    return explorer(ids=[HOSTILE] * 6, title=HOSTILE, notes=[HOSTILE], colourings=titles)


def test_nothing_from_outside_becomes_an_element():
    harmless, other = Page(render_explorer(explorer())), Page(render_explorer(hostile()))
    shape = [(name, set(attributes)) for name, attributes in other.elements]
    assert shape == [(name, set(attributes)) for name, attributes in harmless.elements]


def test_hostile_texts_are_data_as_they_are():
    found = Page(render_explorer(hostile())).data()
    assert found["title"] == found["ids"][0] == found["colourings"][0]["names"][0] == HOSTILE


def test_json_ends_neither_its_element_nor_a_line():
    text = script_json({"a": HOSTILE})
    assert not re.search(r"[<>&\u2028\u2029]", text)
    assert json.loads(text) == {"a": HOSTILE}


def test_the_policy_allows_the_file_s_own_script_and_style_only():
    page = Page(render_explorer(hostile()))
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]

    def digest(text):
        return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert policy.split("; ") == [
        "default-src 'none'", f"script-src '{digest(page.texts['script'][1])}'",
        f"style-src '{digest(page.texts['style'][0])}'", "img-src data:", "base-uri 'none'",
        "form-action 'none'",
    ]  # fmt: skip


def test_nothing_is_fetched_and_no_handler_stands_in_the_markup():
    page = Page(render_explorer(hostile()))
    for _, attributes in page.elements:
        assert not {"src", "href", "srcset", "action", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    script, style = page.texts["script"][1], page.texts["style"][0]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(", script
    )
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|WebSocket|import\(|\burl\(|@import", script + style)


def test_whole_numbers_beyond_a_script_s_become_text():
    found = Page(render_explorer(explorer(ids=[1, 2, 3, 4, 5, 2**60]))).data()
    assert found["ids"] == [1, 2, 3, 4, 5, str(2**60)]


def test_drawings_of_one_s_own_come_along():
    from graphsc.report.drawings import pack

    svgs = pack(["<svg>é</svg>", *[None] * 5])
    found = Page(render_explorer(explorer(drawings=svgs))).data()
    assert base64.b64decode(found["drawings"]["svgs"]["0"]).decode() == "<svg>é</svg>"


def test_half_a_character_does_not_cost_the_map(tmp_path):
    write_explorer(tmp_path / "a" / "explore.html", explorer(ids=["\ud800", *IDS[1:]]))
    assert (tmp_path / "a" / "explore.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    "changes",
    [
        {"places": PLACES[:5]},
        {"places": np.where(PLACES == 5, np.nan, PLACES)},
        {"distances": np.zeros((6, 3))},
        {"colourings": [by_number("n", np.zeros(5))]},
        {"sizes": np.zeros((6, 1), int)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes):
    with pytest.raises(DataError):
        render_explorer(explorer(**changes))
