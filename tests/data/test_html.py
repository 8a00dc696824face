"""What notebooks show: well-formed, escaped, four drawings with the right numbers of nodes and edges."""

from xml.etree import ElementTree

import numpy as np
import pytest

from graphsc.core.tables import Cell, Table
from graphsc.data import html
from graphsc.data.readers import open_collection


def parsed(text):
    return ElementTree.fromstring(text)


def test_collection_shows_statistics_and_four_drawings():
    graphs = open_collection("mutag")
    tree = parsed(graphs._repr_html_())
    cells = [cell.text for cell in tree.iter("td")]
    assert cells[:4] == ["graphs", "188", "nodes", "17.93 on average, 10 to 28"]
    drawings = list(tree.iter("{http://www.w3.org/2000/svg}svg"))
    captions = [caption.text for caption in tree.iter("figcaption")]
    assert captions == [f"graph {index}, label {graphs.labels[index, 0]:g}" for index in (0, 62, 124, 187)]
    for drawing, index in zip(drawings, (0, 62, 124, 187), strict=True):
        graph = graphs.graph(index)
        circles = list(drawing.iter("{http://www.w3.org/2000/svg}circle"))
        lines = list(drawing.iter("{http://www.w3.org/2000/svg}line"))
        assert len(circles) == graph.num_nodes
        assert len(lines) == graph.edge_index.shape[1] // 2


def test_nodes_lie_inside_the_drawing(three):
    tree = parsed(three._repr_html_())
    for circle in tree.iter("{http://www.w3.org/2000/svg}circle"):
        assert 5 <= float(circle.get("cx")) <= html.SIDE - 5
        assert 5 <= float(circle.get("cy")) <= html.SIDE - 5


def test_names_are_escaped(make):
    graphs = make([(1, [])], name="<script>", labels=np.array([0.0]), classes={"label": ("<b>",)})
    text = graphs._repr_html_()
    assert "<script>" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;" in text


def test_empty_and_large_graphs_are_not_drawn(make):
    graphs = make([(0, []), (html.MOST_NODES + 1, [])], allow_empty=True)
    assert "<svg" not in graphs._repr_html_()
    assert "<svg" not in graphs[:0]._repr_html_()


def test_of_a_very_large_collection_only_sizes_are_counted(three, monkeypatch):
    monkeypatch.setattr(html, "MOST_GRAPHS", 2)
    cells = [cell.text for cell in parsed(three._repr_html_()).iter("td")]
    assert cells == ["graphs", "3", "nodes", "6"]


def test_statistics_are_a_table(three):
    statistics = three.describe()
    rows = [[cell.text for cell in row] for row in parsed(statistics._repr_html_()).find("tbody")]
    assert [tuple(row) for row in rows] == statistics.facts()


def test_table_as_html():
    table = Table(
        ("method", "A & B"), (("x", Cell("90 *", "88", best=True)), ("y", None)), "Title", ("**One** note.",)
    )
    tree = parsed(f"<div>{table._repr_html_()}</div>")
    assert tree.find("table/caption").text == "Title"
    assert [cell.text for cell in tree.iter("th")] == ["method", "A & B"]
    assert [cell.get("style") for cell in tree.iter("th")] == ["text-align:left", "text-align:right"]
    (bold,) = tree.iter("b")
    (small,) = tree.iter("small")
    assert (bold.text, small.text) == ("90 *", "88")
    assert tree.find("p").text == "One note."


@pytest.mark.parametrize("name", ["motifs:5", "molecule-like:5"])
def test_generated_graphs_can_be_shown(name):
    assert open_collection(name)._repr_html_().count("<svg") == 4
