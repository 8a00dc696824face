"""Indexing, concatenation, equality and subsets of collections."""

import copy
import pickle
from dataclasses import replace
from itertools import pairwise

import networkx
import numpy as np
import pytest
import sklearn.utils
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from graphsc.core.errors import DataError
from graphsc.data import collection as collection_module
from graphsc.data.arrays import Strings, chunks_of_edges
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection, subset
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.readers import open_collection


def plain(collection):
    """Each graph as plain Python values, by a loop over the pointers."""
    graphs = []
    for i in range(len(collection.node_ptr) - 1):
        nodes = slice(collection.node_ptr[i], collection.node_ptr[i + 1])
        edges = slice(collection.edge_ptr[i], collection.edge_ptr[i + 1])
        graphs.append(
            (
                collection.nodes.codes[nodes].tolist(),
                collection.nodes.floats[nodes].tolist(),
                collection.edge_index[:, edges].tolist(),
                collection.edges.codes[edges].tolist(),
                collection.edges.floats[edges].tolist(),
                None if collection.labels is None else str(collection.labels[i].tolist()),
                collection.ids[i],
            )
        )
    return graphs


class TestSlicing:
    @pytest.mark.parametrize(
        ("index", "chosen"),
        [
            (0, [0]),
            (3, [3]),
            (-1, [4]),
            (np.int32(2), [2]),
            (np.uint8(4), [4]),
            (slice(None), [0, 1, 2, 3, 4]),
            (slice(1, 4), [1, 2, 3]),
            (slice(-2, None), [3, 4]),
            (slice(3, 1), []),
            (slice(5, 9), []),
            (slice(0, 99), [0, 1, 2, 3, 4]),
            (slice(None, None, 2), [0, 2, 4]),
            (slice(None, None, -1), [4, 3, 2, 1, 0]),
            (slice(3, None, -2), [3, 1]),
            ([4, 0, 0, -2], [4, 0, 0, 3]),
            ((2, 1), [2, 1]),
            ([], []),
            (np.array([3, 2], dtype=np.uint64), [3, 2]),
            (np.zeros(0, np.int64), []),
            (np.array([True, False, False, True, True]), [0, 3, 4]),
            ([False] * 5, []),
            (([1, 3], ...), [1, 3]),
            ((slice(1, 3), ...), [1, 2]),
        ],
    )
    def test_the_selected_graphs_are_complete_and_in_order(self, mixed, index, chosen):
        graphs = plain(mixed)
        taken = mixed[index]
        assert plain(taken) == [graphs[i] for i in chosen]
        assert len(taken) == len(chosen)
        taken.check()

    @pytest.mark.parametrize("index", [5, -6, [0, 5], np.array([-6])])
    def test_a_graph_out_of_range_is_named(self, mixed, index):
        with pytest.raises(IndexError, match=r"graph (5|-6) of 5"):
            mixed[index]

    @pytest.mark.parametrize(
        "index", [[True, False], [0.5], ["a"], [[0, 1]], 1.0, None, [0.0], np.zeros((5, 1), bool)]
    )
    def test_an_invalid_index_is_refused(self, mixed, index):
        with pytest.raises(IndexError):
            mixed[index]

    def test_a_slice_without_step_shares_memory(self, mixed):
        assert np.shares_memory(mixed[1:4].edge_index, mixed.edge_index)

    def test_tasks_classes_features_and_name_are_kept(self, mixed):
        taken = mixed[[2]]
        for name in ("tasks", "classes", "features", "name", "notes", "undirected"):
            assert getattr(taken, name) == getattr(mixed, name)

    def test_iteration_gives_collections_of_one_and_ends(self, mixed):
        assert [len(one) for one in mixed] == [1, 1, 1, 1, 1]

    def test_one_graph_has_plain_values(self, mixed):
        graph = mixed.graph(-2)
        assert (graph.num_nodes, graph.id) == (4, "é")
        assert graph.labels.tolist() == [1e-40, 4.0]
        assert [graph.id for graph in mixed.graphs()] == ["a", "", "graph three", "é", "日本"]

    def test_integer_ids_are_plain_integers(self, three):
        assert [type(graph.id) for graph in three.graphs()] == [int, int, int]

    def test_an_empty_selection_can_be_indexed_again(self, mixed):
        empty = mixed[[]]
        assert (len(empty[:]), len(empty[[]]), empty.num_nodes, empty.num_edges) == (0, 0, 0, 0)


class TestConcatenation:
    @given(st.data())
    def test_it_is_the_inverse_of_slicing(self, mixed, data):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(mixed)), max_size=4)))
        borders = [0, *cuts, len(mixed)]
        parts = [mixed[a:b] for a, b in pairwise(borders)]
        assert GraphCollection.concatenate(parts) == mixed

    @given(st.data())
    def test_indexing_one_by_one_and_concatenating_equals_indexing_at_once(self, mixed, data):
        rows = data.draw(st.lists(st.integers(0, len(mixed) - 1), min_size=1, max_size=8))
        assert GraphCollection.concatenate([mixed[row] for row in rows]) == mixed[rows]

    def test_graphs_come_in_the_order_of_the_parts(self, mixed):
        joined = GraphCollection.concatenate([mixed[3:], mixed[:2]])
        assert plain(joined) == [plain(mixed)[i] for i in (3, 4, 0, 1)]

    def test_nothing_is_refused(self):
        with pytest.raises(DataError, match="nothing to concatenate"):
            GraphCollection.concatenate([])

    def test_one_directed_part_makes_the_whole_directed(self, make):
        both, one = make([(2, [(0, 1), (1, 0)])]), make([(2, [(0, 1)])])
        assert GraphCollection.concatenate([both, both]).undirected
        assert not GraphCollection.concatenate([both, one]).undirected

    def test_wide_and_narrow_node_ids_concatenate(self, make):
        small, large = make([(2, [(0, 1)])]), make([(300, [(299, 0)])])
        joined = GraphCollection.concatenate([small, large])
        assert joined.edge_index.tolist() == [[0, 299], [1, 0]]

    def test_string_and_integer_ids_concatenate_as_strings(self, make):
        named = make([(1, [])], ids=Strings.of(["x"]))
        assert list(GraphCollection.concatenate([make([(1, []), (1, [])]), named]).ids) == [
            "0",
            "1",
            "x",
        ]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda c: c.with_features("constant"), "part 1 has other features"),
            (lambda c: replace(c, tasks=("other",)), "part 1 has other tasks"),
            (lambda c: replace(c, classes={"label": ("a", "b")}), "part 1 has other classes"),
            (lambda c: replace(c, labels=None), "part 1 differs from part 0 in having labels"),
            (
                lambda c: replace(c, nodes=FeatureTable.of(6, floats=np.zeros((6, 1)))),
                "part 1 has other columns",
            ),
        ],
    )
    def test_parts_that_do_not_agree_are_refused(self, three, change, message):
        with pytest.raises(DataError, match=message):
            GraphCollection.concatenate([three, change(three)])


class TestEquality:
    def test_name_and_notes_do_not_count(self, mixed):
        assert mixed == replace(mixed, name="other", notes=())

    @pytest.mark.parametrize(
        "change",
        [
            lambda c: replace(c, undirected=True),
            lambda c: replace(c, tasks=("a", "b")),
            lambda c: replace(c, classes={}),
            lambda c: replace(c, labels=None),
            lambda c: replace(c, labels=c.labels + 1),
            lambda c: replace(c, labels=np.nan_to_num(c.labels)),
            lambda c: replace(c, ids=np.arange(5)),
            lambda c: replace(c, ids=Strings.of("abcde")),
            lambda c: replace(c, edge_index=c.edge_index[::-1]),
            lambda c: replace(c, nodes=replace(c.nodes, codes=c.nodes.codes[::-1])),
            lambda c: replace(c, edges=replace(c.edges, floats=c.edges.floats + 1)),
            lambda c: c.with_features("constant"),
            lambda c: c[:4],
            lambda c: c[[1, 0, 2, 3, 4]],
        ],
    )
    def test_everything_else_counts_both_ways_round(self, mixed, change):
        other = change(mixed)
        assert mixed != other
        assert other != mixed

    def test_a_collection_does_not_equal_another_type(self, mixed):
        assert mixed != "mixed"

    @pytest.mark.parametrize("of", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
    def test_a_copy_is_equal(self, mixed, of):
        assert of(mixed) == mixed


class TestScikitLearn:
    def test_train_test_split_slices_it_whole(self, mixed):
        train, test = train_test_split(mixed, test_size=2, random_state=0)
        rows_train, rows_test = train_test_split(np.arange(5), test_size=2, random_state=0)
        assert isinstance(train, GraphCollection)
        assert plain(train) == [plain(mixed)[i] for i in rows_train]
        assert plain(test) == [plain(mixed)[i] for i in rows_test]

    @pytest.mark.parametrize("rows", [[4, 1], np.array([0, 2]), np.array([True, False, True, False, True])])
    def test_safe_indexing_slices_it_whole(self, mixed, rows):
        taken = sklearn.utils._safe_indexing(mixed, rows)
        assert isinstance(taken, GraphCollection)
        assert plain(taken) == [plain(mixed)[i] for i in np.arange(5)[rows]]

    def test_resampling_slices_it_whole(self, mixed):
        sample = sklearn.utils.resample(mixed, n_samples=7, random_state=0)
        rows = sklearn.utils.resample(np.arange(5), n_samples=7, random_state=0)
        assert plain(sample) == [plain(mixed)[i] for i in rows]

    def test_kfold_sees_every_graph_once(self, mixed):
        tested = [mixed[test] for _, test in KFold(5, shuffle=True, random_state=0).split(mixed)]
        assert sorted(plain(part)[0][-1] for part in tested) == sorted(mixed.ids)

    def test_stratified_split_takes_it_as_samples(self, three):
        folds = list(StratifiedKFold(2).split(three[[0, 1, 0, 1]], [0, 1, 0, 1]))
        assert [len(test) for _, test in folds] == [2, 2]

    def test_lengths_agree_with_a_label_vector(self, three):
        sklearn.utils.check_consistent_length(three, three.labels)


class TestDegrees:
    def test_loops_do_not_count_and_duplicates_do(self, make):
        collection = make([(3, [(0, 0), (1, 0), (2, 0), (2, 0), (0, 1), (2, 2)]), (2, []), (1, [(0, 0)])])
        assert collection.degrees.tolist() == [3, 1, 0, 0, 0, 0]

    @given(data=st.data(), most=st.integers(1, 8))
    def test_in_degrees_equal_those_of_networkx_in_chunks_of_any_size(self, make, graph_lists, data, most):
        graphs = data.draw(graph_lists)
        expected = []
        for nodes, edges in graphs:
            graph = networkx.MultiDiGraph()
            graph.add_nodes_from(range(nodes))
            graph.add_edges_from(edge for edge in edges if edge[0] != edge[1])
            expected += [degree for _, degree in sorted(graph.in_degree())]
        collection = make(graphs, allow_empty=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(collection_module, "chunks_of_edges", lambda ptr: chunks_of_edges(ptr, most))
            assert collection.degrees.tolist() == expected

    def test_they_belong_to_the_selected_graphs(self, three):
        assert three.degrees.tolist() == [2, 2, 2, 1, 1, 0]
        assert three[1:].degrees.tolist() == [1, 1, 0]
        assert three[[2, 0]].degrees.tolist() == [0, 2, 2, 2]


class TestFeatures:
    def test_a_name_resolves_against_the_nodes(self, mixed):
        assert mixed.with_features("degree:2+labels").features.cardinalities == (3, 3, 2)

    def test_graphs_stay_the_same(self, mixed):
        assert plain(mixed.with_features("constant")) == plain(mixed)

    def test_a_resolved_scheme_of_another_collection_is_matched_by_value(self, make):
        def of(*values):
            distinct = tuple(dict.fromkeys(values))
            codes = np.array([[distinct.index(value)] for value in values])
            return make(
                [(len(values), [])],
                nodes=FeatureTable.of(len(values), codes, [Column("a", len(distinct), distinct)]),
            )

        seen, new = of("C", "N", "O"), of("O", "C")
        matched = new.with_features(seen.features)
        assert matched.features == seen.features
        assert matched.nodes.codes.ravel().tolist() == [2, 0]
        with pytest.raises(DataError, match="node label 'N' of 'a' was never seen before"):
            seen.with_features(new.features)

    def test_attributes_of_another_name_are_refused(self, make):
        def of(name):
            return make([(1, [])], nodes=FeatureTable.of(1, floats=np.ones((1, 1)), float_names=[name]))

        with pytest.raises(DataError, match="graphs have the node attributes b, needed are a"):
            of("b").with_features(of("a").features)

    def test_attributes_that_are_missing_are_named(self, make, mixed):
        with pytest.raises(DataError, match="graphs have the node attributes none, needed are charge, mass"):
            make([(1, [])]).with_features(mixed.with_features("attributes").features)

    def test_the_content_hash_follows(self, mixed):
        assert mixed.with_features("constant").content_hash != mixed.content_hash


# Subsets that share the arrays of their collection


ROWS = [5, 2, 9, 0, 7]


@pytest.fixture(scope="module")
def graphs():
    return open_collection("molecule-like:12")


def assert_same_batch(left, right):
    for name in ("codes", "rowptr", "source", "ptr", "edge_codes", "y", "index"):
        ours, theirs = getattr(left, name), getattr(right, name)
        assert (ours is None) == (theirs is None), name
        assert ours is None or bool((ours == theirs).all()), name


def test_subset_batches_are_those_of_a_copy_with_positions_in_the_subset(graphs):
    some, taken = subset(graphs, ROWS), graphs.take(ROWS)
    assert len(some) == 5
    rows = np.array([4, 1])
    batch = GraphBatch.gather(some, rows)
    assert_same_batch(batch, GraphBatch.gather(taken, rows))
    assert batch.index.tolist() == [4, 1]


def test_a_subset_copies_no_array(graphs):
    some = subset(graphs, ROWS)
    assert np.shares_memory(some.edge_index, graphs.edge_index)
    assert np.shares_memory(some.nodes.codes, graphs.nodes.codes)


def test_counts_slices_statistics_and_files_of_a_subset_are_those_of_a_copy(graphs, tmp_path):
    some, taken = subset(graphs, ROWS), graphs.take(ROWS)
    assert (some.num_nodes, some.num_edges) == (taken.num_nodes, taken.num_edges)
    assert some == taken
    assert some[1:3] == taken[1:3]
    assert some[[0, 4]] == taken[[0, 4]]
    assert some[-1] == taken[-1]
    assert some.describe() == taken.describe()
    some.save(tmp_path / "s.safetensors")
    assert open_collection(tmp_path / "s.safetensors") == taken
    with pytest.raises(IndexError):
        some.take([5])


def test_degree_features_of_a_subset_are_those_of_a_copy(graphs):
    seen = graphs.with_features("degree:5")
    assert_same_batch(
        GraphBatch.gather(subset(seen, ROWS), np.arange(5)), GraphBatch.gather(seen.take(ROWS), np.arange(5))
    )


def test_features_and_hash_of_a_subset_change_together(graphs):
    changed = subset(graphs, ROWS).with_features("constant")
    assert changed == graphs.take(ROWS).with_features("constant")
    assert changed.content_hash == subset(graphs.with_features("constant"), ROWS).content_hash


def test_concatenating_subsets_takes_their_graphs_only(graphs):
    parts = [subset(graphs, ROWS), subset(graphs, [3])]
    assert GraphCollection.concatenate(parts) == graphs.take([*ROWS, 3])


def test_a_subset_of_a_subset(graphs):
    assert subset(subset(graphs, ROWS), [3, 1]) == graphs.take([0, 2])


def test_the_hash_of_a_subset_depends_on_its_graphs_and_their_collection(graphs):
    one = subset(graphs, ROWS).content_hash
    assert one == subset(copy.copy(graphs), ROWS).content_hash
    assert one != subset(graphs, ROWS[::-1]).content_hash
    assert one != subset(graphs[:11], ROWS).content_hash


def test_a_subset_can_be_pickled(graphs):
    some = pickle.loads(pickle.dumps(subset(graphs, ROWS)))
    assert some == graphs.take(ROWS)
    assert some.content_hash == subset(graphs, ROWS).content_hash


def test_class_codes_count_from_zero_and_keep_the_names(make):
    graphs = make([(1, []), (1, []), (1, []), (1, [])], labels=np.array([1.0, -1.0, np.nan, 7.0]))
    codes, names = graphs.class_codes()
    assert codes.dtype == np.int64
    assert codes.tolist() == [1, 0, -1, 2]
    assert names == ("-1", "1", "7")


def test_class_codes_of_classes_with_names_by_task(mixed):
    codes, names = mixed[[0, 2]].class_codes("toxic")
    assert codes.tolist() == [1, -1]
    assert names == ("no", "yes")


def test_class_codes_of_a_regression_and_of_no_task_are_refused(mixed, three):
    with pytest.raises(DataError, match="fractions"):
        mixed.class_codes("energy")
    with pytest.raises(DataError, match="there is no label 'toxin'; did you mean 'toxic'"):
        mixed.class_codes("toxin")
    with pytest.raises(DataError, match="there is no label 1"):
        three.class_codes(1)
