"""Similar graphs, outliers and clusters, on embeddings that are worked out by hand."""

import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.readers import open_collection
from graphsc.evaluation.clustering import find_clusters
from graphsc.experiments.explore import Embedded
from graphsc.experiments.similarity import (
    cluster_graphs,
    clusters_page,
    find_outliers,
    find_similar,
    outliers_page,
    similar_page,
)
from graphsc.report.html import render_report


def embedded(rows, **more):
    rows = np.array(rows, np.float32)
    return Embedded("made", rows, [f"g{k}" for k in range(len(rows))], None, **more)


LINE = embedded([[0, 0], [1, 0], [3, 0], [7, 0], [100, 1]])


def test_the_nearest_graphs_of_an_id_are_in_order():
    found = find_similar(LINE, to=["g2"], k=3)
    assert [row[:3] for row in found.table().rows] == [("g2", 1, "g1"), ("g2", 2, "g0"), ("g2", 3, "g3")]


def test_all_graphs_are_queries_by_default():
    found = find_similar(LINE, k=1)
    assert [(row[0], row[2]) for row in found.table().rows] == [
        ("g0", "g1"), ("g1", "g0"), ("g2", "g1"), ("g3", "g2"), ("g4", "g3"),
    ]  # fmt: skip


def test_other_graphs_can_be_queries():
    found = find_similar(LINE, queries=embedded([[6.4, 0]]), k=2)
    assert [row[:3] for row in found.table().rows] == [("g0", 1, "g3"), ("g0", 2, "g2")]


def test_an_unknown_id_names_close_ones():
    with pytest.raises(ConfigError, match=r"no graph has the id 'g22'; ids are g2"):
        find_similar(LINE, to=["g22"])


def test_graphs_that_share_an_id_are_all_queries():
    """Only the last of them was one, without a word."""
    shared = Embedded("made", LINE.rows, ["a", "b", "c", "d", "a"], None)
    found = find_similar(shared, to=["a"], k=1)
    assert [(row[0], row[2]) for row in found.table().rows] == [("a", "b"), ("a", "d")]


def test_a_graph_far_from_all_others_is_the_outlier():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    rows[17] = [30, -30, 30]
    found = find_outliers(embedded(rows), k=5)
    assert found.order[0] == 17
    assert np.flatnonzero(found.flagged).tolist() == [17]
    # The mean distance to the five nearest rows, of standardised columns.
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    apart = np.sort(np.linalg.norm(scaled[17] - scaled, axis=1))[1:6]
    assert found.scores[17] == pytest.approx(apart.mean(), rel=1e-4)
    table = found.table()
    assert table.rows[0][0] == "g17"
    assert table.rows[0][2] == "yes"


def test_two_separate_groups_are_two_clusters_the_larger_first():
    generator = np.random.default_rng(1)
    rows = np.concatenate([generator.normal(0, 1, (20, 4)), generator.normal(30, 1, (40, 4))])
    found = cluster_graphs(embedded(rows))
    assert found.number == 2
    assert max(found.tried, key=found.tried.get) == 2
    assert found.cluster.tolist() == [2] * 20 + [1] * 40
    assert found.silhouette > 0.8


def test_the_number_of_clusters_can_be_set_and_is_checked():
    rows = np.random.default_rng(2).normal(size=(12, 2))
    assert cluster_graphs(embedded(rows), clusters=5).number == 5
    with pytest.raises(ConfigError, match="13 clusters of 12 different embeddings; use 2 to 12"):
        cluster_graphs(embedded(rows), clusters=13)
    with pytest.raises(DataError, match="1 different embeddings"):
        find_clusters(np.ones((5, 2)))


def test_pages_draw_the_graphs():
    collection = open_collection("motifs:30")
    rows = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    source = Embedded("motifs", rows, list(collection.ids), collection, notes=("2 of 32 rows are left out.",))
    similar = render_report(similar_page(find_similar(source, to=["3"], k=4)))
    assert similar.count("<img") == 5  # the query and four others
    assert "2 of 32 rows are left out." in similar
    assert render_report(outliers_page(find_outliers(source), 6)).count("<img") == 6
    clusters = render_report(clusters_page(cluster_graphs(source, clusters=2)))
    assert clusters.count("<img") == 1 + 2 * 8  # a map, and eight graphs of each cluster


def test_graphs_too_large_to_draw_are_named():
    import networkx as nx

    collection = open_collection([nx.path_graph(400), nx.path_graph(3), nx.path_graph(4)])
    source = Embedded("paths", np.eye(3, dtype=np.float32), list(collection.ids), collection)
    text = render_report(similar_page(find_similar(source, to=["0"])))
    assert "not drawn" in text
    assert text.count("<img") == 2


# Searching a library of molecules.

LIBRARY = [chain + ring for chain in ("", "C", "CC", "CCO", "CCN", "OC") for ring in
           ("c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccoc1", "C1CCNCC1")]  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    pytest.importorskip("rdkit")
    path = tmp_path_factory.mktemp("library") / "library.csv"
    lines = [f"M-{number},{smiles}" for number, smiles in enumerate(LIBRARY)]
    lines.insert(3, "M-bad,no molecule")
    path.write_text("\n".join(["id,smiles", *lines]) + "\n")
    return path


def test_a_library_in_small_chunks_gives_what_the_whole_gives(library, monkeypatch, tmp_path):
    from graphsc.experiments import embeddings_of, find_similar, search_library
    from graphsc.experiments import similarity as module
    from graphsc.training import embed_source

    (tmp_path / "q.csv").write_text("id,smiles\nq1,CCc1ccncc1\nq2,COC1CCNCC1\n")
    whole = find_similar(
        embeddings_of("graphsc-moses", str(library)),
        queries=embeddings_of("graphsc-moses", str(tmp_path / "q.csv")), k=4,
    )  # fmt: skip
    monkeypatch.setattr(module, "LIBRARY_CHUNK", 7)
    monkeypatch.setattr(module, "VECTOR_CHUNK", 5)
    found = search_library("graphsc-moses", tmp_path / "q.csv", library, top=4)
    assert found.searched == len(LIBRARY)
    np.testing.assert_allclose(found.distances, whole.distances, rtol=1e-4, atol=1e-4)
    rows = found.table().rows
    assert [row[:3] for row in rows] == [row[:3] for row in whole.table().rows]
    names = {f"M-{number}": smiles for number, smiles in enumerate(LIBRARY)}
    assert all(names[row[2]] == row[4] for row in rows)
    assert rows[0][4] == "CCc1ccncc1"  # the query itself is in the library
    for ending in ("npz", "csv"):
        embed_source("graphsc-moses", library, tmp_path / f"v.{ending}", device="cpu")
        stored = search_library(
            "graphsc-moses", tmp_path / "q.csv", tmp_path / f"v.{ending}", data=library, top=4
        )
        assert [row[:3] for row in stored.table().rows] == [row[:3] for row in rows]
        assert [row[4] for row in stored.table().rows] == [row[4] for row in rows]


def test_a_query_may_be_a_smiles_string_and_its_page_draws_it(library):
    from graphsc.experiments import search_library
    from graphsc.experiments.similarity import similar_page

    found = search_library("graphsc-moses", "CCOc1ccccc1", library, top=2)
    page = similar_page(found)
    (gallery,) = page.galleries
    assert gallery.title == "Similar to CCOc1ccccc1"
    assert len(gallery.cards) == 3
    assert all("<svg" in card.svg for card in gallery.cards)
    assert f"of {len(LIBRARY)} graphs" in page.lead


@pytest.mark.parametrize(
    ("query", "top", "message"),
    [("blub", 3, "neither a file nor a SMILES string"), ("CCO", 0, "top is 0")],
)
def test_a_wrong_question_is_answered(library, query, top, message):
    from graphsc.core.errors import GraphscError
    from graphsc.experiments import search_library

    with pytest.raises(GraphscError, match=message):
        search_library("graphsc-moses", query, library, top=top)


def test_vectors_of_another_model_are_refused(library, tmp_path):
    from graphsc.core.errors import DataError
    from graphsc.experiments import search_library

    np.savez(tmp_path / "v.npz", vectors=np.zeros((4, 7), np.float32), ids=np.arange(4))
    with pytest.raises(DataError, match="7 dimensions"):
        search_library("graphsc-moses", "CCO", tmp_path / "v.npz")
    (tmp_path / "w.npz").write_bytes(b"no archive")
    with pytest.raises(DataError, match="not a file of embeddings"):
        search_library("graphsc-moses", "CCO", tmp_path / "w.npz")
