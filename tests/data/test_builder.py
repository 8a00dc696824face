import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import DataError
from graphsc.data import builder
from graphsc.data.arrays import Strings, chunks_of_edges
from graphsc.data.builder import build_collection, downcast_labels
from graphsc.data.columns import Column, FeatureTable

PATH = [(0, 1), (1, 0), (1, 2), (2, 1)]


def edges_of(collection, graph):
    part = slice(collection.edge_ptr[graph], collection.edge_ptr[graph + 1])
    return [tuple(edge) for edge in collection.edge_index[:, part].T.tolist()]


def numbered(graphs):
    """Edge columns that say which edge of the input a row came from."""
    count = sum(len(edges) for _, edges in graphs)
    rows = np.arange(count)
    return FeatureTable.of(count, rows[:, None], [Column("row", max(count, 1))], rows[:, None] / 2, ["half"])


class TestOrder:
    def test_edges_are_sorted_by_destination_then_source(self, make):
        collection = make([(3, [(2, 0), (0, 2), (1, 0), (0, 1), (1, 2)])])
        assert edges_of(collection, 0) == [(1, 0), (2, 0), (0, 1), (0, 2), (1, 2)]

    @given(data=st.data(), most=st.integers(1, 20), columns=st.booleans())
    def test_every_graph_has_its_own_edges_sorted_in_chunks_of_any_size(
        self, make, graph_lists, data, most, columns
    ):
        graphs = data.draw(graph_lists)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builder, "chunks_of_edges", lambda ptr: chunks_of_edges(ptr, most))
            collection = make(graphs, edges=numbered(graphs) if columns else None, allow_empty=True)
        for i, (_, edges) in enumerate(graphs):
            assert edges_of(collection, i) == sorted(edges, key=lambda edge: (edge[1], edge[0]))
        collection.check()

    @given(data=st.data(), merge=st.booleans(), most=st.integers(1, 20))
    def test_edge_columns_follow_their_edges(self, make, graph_lists, data, merge, most):
        graphs = data.draw(graph_lists)
        given_edges = [(i, *edge) for i, (_, edges) in enumerate(graphs) for edge in edges]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builder, "chunks_of_edges", lambda ptr: chunks_of_edges(ptr, most))
            collection = make(graphs, edges=numbered(graphs), merge_duplicates=merge, allow_empty=True)
        expected = sorted(range(len(given_edges)), key=lambda r: (*given_edges[r][::2], given_edges[r][1], r))
        if merge:
            expected = [row for row in expected if given_edges.index(given_edges[row]) == row]
        assert collection.edges.codes.ravel().tolist() == expected
        assert collection.edges.floats.ravel().tolist() == [row / 2 for row in expected]
        found = [(i, *edge) for i in range(len(graphs)) for edge in edges_of(collection, i)]
        assert found == [given_edges[row] for row in expected]

    def test_a_collection_in_chunks_equals_one_in_a_single_pass(self, make, monkeypatch):
        rng = np.random.default_rng(0)
        graphs = [(n, rng.integers(0, n, (rng.integers(0, 30), 2)).tolist()) for n in rng.integers(1, 9, 50)]
        options = {"edges": numbered(graphs), "merge_duplicates": True}
        whole = make(graphs, **options)
        monkeypatch.setattr(builder, "chunks_of_edges", lambda ptr: chunks_of_edges(ptr, 37))
        assert make(graphs, **options) == whole

    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
    def test_ids_of_any_integer_type_are_taken(self, dtype):
        collection = build_collection(
            node_counts=np.array([3], dtype=dtype),
            edge_counts=np.array([2], dtype=dtype),
            source=np.array([2, 0], dtype=dtype),
            destination=np.array([1, 2], dtype=dtype),
        )
        assert collection.edge_index.tolist() == [[2, 0], [1, 2]]


class TestUndirected:
    @pytest.mark.parametrize(
        ("edges", "undirected"),
        [
            ([], True),
            (PATH, True),
            ([(0, 1)], False),
            ([(0, 1), (1, 2), (2, 0)], False),
            ([(1, 1)], True),
            ([(1, 1), (0, 1)], False),
            ([(0, 1), (1, 0), (0, 1), (1, 0)], True),
            ([(0, 1), (1, 0), (0, 1)], False),
            ([(0, 1), (0, 1)], False),
            ([(0, 1), (2, 1)], False),
        ],
    )
    def test_every_edge_must_have_its_reverse(self, make, edges, undirected):
        assert make([(3, edges)]).undirected is undirected

    def test_merging_can_make_a_graph_undirected(self, make):
        assert make([(2, [(0, 1), (1, 0), (0, 1)])], merge_duplicates=True).undirected

    def test_the_reverse_must_be_in_the_same_graph(self, make):
        assert not make([(2, [(0, 1)]), (2, [(1, 0)])]).undirected

    def test_one_directed_graph_is_enough_to_be_directed(self, make):
        assert not make([(3, PATH), (2, [(0, 1)]), (3, PATH)]).undirected

    @given(data=st.data(), merge=st.booleans(), most=st.integers(1, 20))
    def test_it_equals_a_loop_over_all_edges(self, make, graph_lists, data, merge, most):
        graphs = data.draw(graph_lists)
        if data.draw(st.booleans()):
            graphs = [(n, edges + [(b, a) for a, b in edges if a != b]) for n, edges in graphs]
        seen = [set(edges) if merge else edges for _, edges in graphs]
        expected = all(
            list(edges).count((a, b)) == list(edges).count((b, a)) for edges in seen for a, b in edges
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builder, "chunks_of_edges", lambda ptr: chunks_of_edges(ptr, most))
            assert make(graphs, merge_duplicates=merge, allow_empty=True).undirected is expected


class TestDuplicates:
    def test_they_are_kept_by_default(self, make):
        assert edges_of(make([(2, [(0, 1), (0, 1)])]), 0) == [(0, 1), (0, 1)]

    def test_merging_says_how_many(self, make):
        collection = make(
            [(2, [(0, 1), (0, 1), (0, 1)]), (2, [(0, 1)]), (1, [(0, 0), (0, 0)])],
            merge_duplicates=True,
            notes=["read by hand"],
        )
        assert np.diff(collection.edge_ptr).tolist() == [1, 1, 1]
        assert collection.notes == ("read by hand", "3 edges were listed more than once and merged")

    def test_attributes_that_auto_does_not_use_are_noted(self, make):
        nodes = FeatureTable.of(2, np.array([[0], [1]]), [Column("kind", 2)], np.ones((2, 1)), ["mass"])
        (note,) = make([(2, [])], nodes=nodes).notes
        assert note == "node attributes are not used: mass; to use them, set features to labels+attributes"
        assert make([(2, [])], nodes=nodes, features="labels").notes == ()
        assert make([(2, [])], nodes=nodes, features="labels+attributes").notes == ()

    def test_nothing_to_merge_is_not_noted(self, make):
        assert make([(3, PATH)], merge_duplicates=True).notes == ()


class TestSmallestTypes:
    @pytest.mark.parametrize(
        ("nodes", "dtype"), [(1, np.uint8), (256, np.uint8), (257, np.uint16), (65_537, np.uint32)]
    )
    def test_node_ids_are_as_narrow_as_the_largest_graph_allows(self, make, nodes, dtype):
        collection = make([(1, []), (nodes, [(nodes - 1, 0)])])
        assert collection.edge_index.dtype == dtype
        assert edges_of(collection, 1) == [(nodes - 1, 0)]

    @pytest.mark.parametrize(
        ("labels", "dtype"),
        [
            ([0, 1], np.float32),
            ([0.5, np.nan], np.float32),
            ([0.1, 1], np.float64),
            ([2**24, 2**24 + 1], np.float64),
            ([1e300, 0], np.float64),
        ],
    )
    def test_labels_are_float32_only_if_that_is_exact(self, labels, dtype):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            narrow = downcast_labels(np.array(labels))
        assert narrow.dtype == dtype
        assert np.array_equal(narrow.ravel(), np.array(labels, dtype=np.float64), equal_nan=True)

    def test_ids_of_any_integer_type_become_one(self, make, tmp_path):
        collection = make([(1, []), (1, [])], ids=np.array([7, 3], dtype=np.int32))
        assert collection.ids.dtype == np.int64
        collection.save(tmp_path / "a.safetensors")


class TestLabels:
    def test_one_task_is_called_label(self, make):
        assert make([(1, [])], labels=np.array([1])).tasks == ("label",)

    def test_many_tasks_are_numbered(self, make):
        assert make([(1, [])], labels=np.array([[1, 2]])).tasks == ("task0", "task1")

    def test_names_must_be_as_many_as_columns(self, make):
        with pytest.raises(DataError, match="2 label columns but 1 task names"):
            make([(1, [])], labels=np.array([[1, 2]]), tasks=["a"])

    def test_no_labels_have_no_tasks(self, make):
        collection = make([(1, [])], tasks=["a"])
        assert (collection.labels, collection.tasks) == (None, ())

    def test_an_infinite_label_names_its_graph(self, make):
        with pytest.raises(DataError, match="label of graph 1 is infinite"):
            make([(1, []), (1, [])], labels=np.array([1, np.inf]))


class TestRefusals:
    def test_no_graphs(self, make):
        with pytest.raises(DataError, match="there is no graph in this source"):
            make([])

    def test_an_empty_graph_is_named(self, make):
        with pytest.raises(DataError, match="graph 1 has no nodes; leave it out, or pass allow_empty"):
            make([(1, []), (0, []), (0, [])])

    def test_an_empty_graph_is_accepted_with_allow_empty(self, make):
        collection = make([(0, []), (2, [(0, 1)]), (0, [])], allow_empty=True)
        assert collection.node_ptr.tolist() == [0, 0, 2, 2]
        assert collection.edge_ptr.tolist() == [0, 0, 1, 1]

    def test_only_empty_graphs_are_accepted_with_allow_empty(self, make):
        collection = make([(0, []), (0, [])], allow_empty=True)
        assert (len(collection), collection.num_nodes) == (2, 0)

    @pytest.mark.parametrize(
        ("edge", "node"), [((3, 0), 3), ((0, 3), 3), ((-1, 0), -1), ((0, -1), -1), ((2, 255), 255)]
    )
    def test_an_edge_out_of_range_names_graph_and_edge(self, make, edge, node):
        with pytest.raises(DataError) as caught:
            make([(5, [(4, 4)]), (3, [(0, 1), edge])])
        assert str(caught.value) == f"edge_index names node {node} of a graph with 3 nodes (graph 1, edge 1)"

    def test_an_edge_in_an_empty_graph_is_out_of_range(self, make):
        with pytest.raises(DataError, match="of a graph with 0 nodes"):
            make([(0, [(0, 0)])], allow_empty=True)

    def test_float_node_ids(self):
        with pytest.raises(DataError, match="edge_index holds float64, not whole numbers"):
            build_collection(
                node_counts=np.array([2]),
                edge_counts=np.array([1]),
                source=np.array([0.5]),
                destination=np.array([1]),
            )

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_a_node_attribute_that_is_not_finite_names_graph_node_and_attribute(self, make, value):
        floats = np.zeros((5, 2))
        floats[4, 1] = value
        with pytest.raises(DataError) as caught:
            make([(2, []), (3, [])], nodes=FeatureTable.of(5, floats=floats, float_names=["charge", "mass"]))
        assert str(caught.value) == "node attribute 'mass' is not a finite number (graph 1, node 2)"

    def test_an_edge_attribute_that_is_not_finite_names_graph_edge_and_attribute(self, make):
        floats = np.array([[0.0], [0.0], [np.nan]])
        with pytest.raises(DataError) as caught:
            make(
                [(2, [(0, 1)]), (2, [(1, 0), (0, 1)])],
                edges=FeatureTable.of(3, floats=floats, float_names=["length"]),
            )
        assert str(caught.value) == "edge attribute 'length' is not a finite number (graph 1, edge 1)"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"nodes": FeatureTable.empty(2)}, "2 rows of node columns where 3 are needed"),
            ({"edges": FeatureTable.empty(5)}, "5 rows of edge columns where 4 are needed"),
            ({"labels": np.zeros(2)}, "2 labels where 1 are needed"),
            ({"ids": np.arange(3)}, "3 ids where 1 are needed"),
            ({"ids": Strings.of([])}, "0 ids where 1 are needed"),
        ],
    )
    def test_parts_of_differing_length(self, make, options, message):
        with pytest.raises(DataError, match=message):
            make([(3, PATH)], **options)

    @pytest.mark.parametrize(
        ("counts", "message"),
        [([3], "4 sources where 3 are needed"), ([4, 0], "2 edge counts where 1 are needed")],
    )
    def test_edge_counts_that_do_not_fit_the_edges(self, counts, message):
        source, destination = np.array(PATH).T
        with pytest.raises(DataError, match=message):
            build_collection(
                node_counts=np.array([3]),
                edge_counts=np.array(counts),
                source=source,
                destination=destination,
            )


def test_the_arguments_are_not_changed():
    source, destination = np.array([2, 0]), np.array([1, 2])
    build_collection(
        node_counts=np.array([3]), edge_counts=np.array([2]), source=source, destination=destination
    )
    assert (source.tolist(), destination.tolist()) == ([2, 0], [1, 2])
