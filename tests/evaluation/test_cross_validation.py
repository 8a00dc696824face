"""Nested cross-validation against scikit-learn's grid search on the same folds, folds, and few labels."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from graphsc.core.errors import ConfigError, DataError, NotFoundError
from graphsc.evaluation.cross_validation import (
    Evaluation,
    class_codes,
    evaluate,
    evaluate_split,
    few_labels,
    size_folds,
    stratified_folds,
)
from graphsc.evaluation.protocol import Protocol

LABELS = np.array([0] * 23 + [1] * 11 + [2] * 40)


def test_folds_are_those_of_scikit_learn():
    expected = np.empty(len(LABELS), int)
    for number, (_, test) in enumerate(
        StratifiedKFold(5, shuffle=True, random_state=3).split(LABELS, LABELS)
    ):
        expected[test] = number
    assert stratified_folds(LABELS, 5, seed=3).tolist() == expected.tolist()


def test_each_class_is_spread_evenly():
    fold = stratified_folds(LABELS, 10)
    for code in range(3):
        counts = np.bincount(fold[np.equal(LABELS, code)], minlength=10)
        assert counts.max() - counts.min() <= 1


def test_another_seed_gives_other_folds():
    assert (stratified_folds(LABELS, 10, seed=0) != stratified_folds(LABELS, 10, seed=1)).any()


def test_a_class_smaller_than_folds_suggests_a_number_of_folds():
    labels = np.array([0] * 20 + [1] * 20 + [3] * 4)
    with pytest.raises(DataError, match=r"^class 3 has 4 graphs, 10 folds asked; use --folds 4$"):
        stratified_folds(labels, 10)


def test_a_class_is_named_in_the_error_if_names_are_given():
    with pytest.raises(DataError, match="class toxic has 3 graphs, 5 folds asked"):
        stratified_folds(np.array([0] * 20 + [1] * 3), 5, names=["harmless", "toxic"])


def test_a_class_of_one_graph_does_not_suggest_one_fold():
    with pytest.raises(DataError, match="class 1 has 1 graph, 2 folds asked; leave this class out"):
        stratified_folds(np.array([0, 0, 0, 1]), 2)


@pytest.mark.parametrize(
    ("labels", "words"), [([], "no labels"), ([2, 2, 2], "all 3 graphs are of one class")]
)
def test_fewer_than_two_classes_are_refused(labels, words):
    with pytest.raises(DataError, match=words):
        stratified_folds(np.array(labels, dtype=np.int64), 2)


def test_one_fold_is_refused():
    with pytest.raises(ConfigError, match="folds is 1; use 2 or more"):
        stratified_folds(LABELS, 1)


@pytest.mark.parametrize(
    ("labels", "codes", "names"),
    [
        (np.array([1.0, -1.0, 1.0], np.float32), [1, 0, 1], ["-1", "1"]),
        (np.array([[2.5], [0.0]]), [1, 0], ["0", "2.5"]),
        (np.array(["b", "a", "b"]), [1, 0, 1], ["a", "b"]),
        (np.array(["b", "a"], dtype=object), [1, 0], ["a", "b"]),
        ([7, 7, 9], [0, 0, 1], ["7", "9"]),
    ],
)
def test_classes_are_numbered_in_sorted_order(labels, codes, names):
    computed, code_names = class_codes(labels)
    assert computed.tolist() == codes
    assert computed.dtype == np.int64
    assert code_names == names


@pytest.mark.parametrize("labels", [[0.0, 1.0, np.nan, 1.0], np.array(["a", "b", None, "a"], dtype=object)])
def test_missing_labels_are_counted_and_located(labels):
    with pytest.raises(DataError, match=r"1 of 4 graphs have no label \(first graph 2\); leave"):
        class_codes(labels)


def test_several_tasks_are_refused():
    with pytest.raises(DataError, match="choose one task"):
        class_codes(np.zeros((4, 2)))


def test_size_folds_divide_each_class():
    labels = np.array([0, 1, 0, 1, 0, 1, 0])
    sizes = np.array([5, 9, 1, 2, 7, 3, 6])
    # Class 0 has sizes 1 5 | 6 7, class 1 has 2 3 | 9: the smaller half is tested in fold 1.
    assert size_folds(labels, sizes).tolist() == [1, 0, 1, 1, 0, 1, 0]


def test_size_folds_of_a_class_of_one_graph_are_refused():
    with pytest.raises(DataError, match="two halves asked"):
        size_folds(np.array([0, 0, 1]), np.array([1, 2, 3]))


SHORT = Protocol(folds=4)


def assert_same(evaluation, expected):
    predictions, chosen, inner = expected
    assert evaluation.predictions.tolist() == predictions.tolist()
    assert evaluation.chosen == chosen
    np.testing.assert_allclose(evaluation.inner, inner, atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "apart"),
    [((60, 60), 0.5), ((100, 20), 0.7), ((40, 50, 30), 0.6), ((70, 14, 25, 30), 1.0), ((50, 50), 9.0)],
    ids=["two classes", "imbalanced", "three classes", "four classes", "separable"],
)
def test_svm_is_grid_search_over_svc(clouds, by_grid_search, sizes, apart):
    values, labels = clouds(sizes, apart=apart)
    fold = stratified_folds(labels, 4, seed=1)
    assert_same(
        evaluate(values, labels, SHORT, seed=1),
        by_grid_search(SVC(), "C", SHORT.grid, values, labels, fold),
    )


def test_inner_folds_in_the_order_of_the_file(clouds, by_grid_search):
    values, labels = clouds((60, 60), apart=0.5)
    fold = stratified_folds(labels, 4)
    in_order = replace(SHORT, inner_order="file")
    expected = by_grid_search(SVC(), "C", SHORT.grid, values, labels, fold, order="file")
    assert_same(evaluate(values, labels, in_order), expected)
    assert not np.array_equal(evaluate(values, labels, SHORT).inner, expected[2])


def test_a_sorted_file_does_not_spoil_the_choice():
    """Adjacent rows share a cluster, so that folds in file order lack whole clusters.

    Points of a cluster share their label, adjacent clusters do not, so that only a point's own cluster tells
    its label. Outer training sets contain all clusters; inner ones only if shuffled.
    """
    cluster = np.repeat(np.arange(24), 10)
    values = cluster[:, None] + np.random.default_rng(0).normal(scale=0.05, size=(len(cluster), 1))
    labels = cluster % 2
    protocol = Protocol("knn", folds=5, grid=(1, 25))
    shuffled, in_order = (
        evaluate(values, labels, replace(protocol, inner_order=order)) for order in ("shuffled", "file")
    )
    assert in_order.inner[:, 0].max() < 0.7
    assert shuffled.inner[:, 0].min() == 1
    assert shuffled.chosen == (1.0,) * 5
    assert shuffled.accuracy == 1


def test_duplicate_rows_with_both_labels(clouds, by_grid_search):
    values, labels = clouds((40, 40))
    values, labels = np.concatenate([values, values[:30]]), np.concatenate([labels, 1 - labels[:30]])
    fold = stratified_folds(labels, 4)
    assert_same(evaluate(values, labels, SHORT), by_grid_search(SVC(), "C", SHORT.grid, values, labels, fold))


def test_standardised_is_a_pipeline_with_a_scaler(clouds, by_grid_search):
    values, labels = clouds((50, 40, 20))
    values *= np.array([1, 100, 0.01, 5, 1, 0])  # a constant column among them
    protocol = Protocol(folds=4, scale="standardised")
    model = make_pipeline(StandardScaler(), SVC())
    assert_same(
        evaluate(values, labels, protocol),
        by_grid_search(model, "svc__C", protocol.grid, values, labels, stratified_folds(labels, 4)),
    )


@pytest.mark.parametrize("sizes", [(50, 40), (40, 30, 20)], ids=["two classes", "three classes"])
def test_gram_is_grid_search_over_a_precomputed_kernel(clouds, by_grid_search, sizes):
    values, labels = clouds(sizes, scale=1.0)
    gram = (values @ values.T + 1) ** 2
    gram /= gram.mean()
    assert_same(
        evaluate(gram, labels, SHORT, gram=True),
        by_grid_search(
            SVC(kernel="precomputed"), "C", SHORT.grid, gram, labels, stratified_folds(labels, 4), gram=True
        ),
    )


@pytest.mark.parametrize("scale", ["raw", "standardised"])
@pytest.mark.parametrize(
    ("name", "model", "parameter"),
    [
        ("linear-svm", LinearSVC(dual=False), "C"),
        ("logistic", LogisticRegression(solver="newton-cholesky"), "C"),
        ("knn", KNeighborsClassifier(), "n_neighbors"),
    ],
    ids=["linear-svm", "logistic", "knn"],
)
def test_other_classifiers_are_those_of_scikit_learn(clouds, by_grid_search, name, model, parameter, scale):
    values, labels = clouds((40, 30, 30))
    protocol = Protocol(name, folds=3, scale=scale)
    grid = [int(value) for value in protocol.grid] if name == "knn" else protocol.grid
    if scale == "standardised":
        model, parameter = (
            make_pipeline(StandardScaler(), model),
            f"{type(model).__name__.lower()}__{parameter}",
        )
    assert_same(
        evaluate(values, labels, protocol),
        by_grid_search(model, parameter, grid, values, labels, stratified_folds(labels, 3)),
    )


def test_single_precision_is_evaluated_in_double_precision(clouds):
    values, labels = clouds((30, 30))
    single = values.astype(np.float32)
    evaluation, expected = (evaluate(part, labels, SHORT) for part in (single, single.astype(np.float64)))
    assert evaluation.predictions.tolist() == expected.predictions.tolist()


@pytest.mark.parametrize("classifier", ["svm", "linear-svm", "logistic"])
@pytest.mark.parametrize("scale", ["raw", "standardised"])
def test_constant_vectors_give_the_majority_rate(classifier, scale):
    labels = np.array([1] * 30 + [0] * 20)
    evaluation = evaluate(np.full((50, 3), 2.0), labels, Protocol(classifier, folds=5, scale=scale))
    assert evaluation.accuracy == pytest.approx(0.6)


def test_shuffled_labels_give_chance(clouds):
    values, labels = clouds((100, 100), apart=3.0)
    shuffled = np.random.default_rng(0).permutation(labels)
    assert evaluate(values, labels, SHORT).accuracy > 0.95
    assert abs(evaluate(values, shuffled, SHORT).accuracy - 0.5) < 0.1


def test_labels_of_a_test_fold_do_not_influence_its_predictions(clouds):
    values, labels = clouds((40, 40))
    fold = stratified_folds(labels, 4)
    turned = np.where(fold == 2, 1 - labels, labels)
    before, after = (evaluate(values, part, SHORT, fold=fold) for part in (labels, turned))
    assert before.predictions[fold == 2].tolist() == after.predictions[fold == 2].tolist()
    assert before.inner[2].tolist() == after.inner[2].tolist()


def test_accuracy_is_the_mean_over_folds_not_over_graphs():
    evaluation = Evaluation(
        predictions=np.array([0, 1, 1, 1, 1]),
        fold=np.array([0, 0, 0, 0, 1]),
        labels=np.array([0, 1, 0, 0, 1]),
        chosen=(1.0, 1.0),
        inner=np.zeros((2, 1)),
    )
    assert evaluation.accuracies.tolist() == [0.5, 1.0]
    assert evaluation.accuracy == 0.75
    assert evaluation.deviation == 0.25


def test_given_folds_and_labels_are_returned(clouds):
    values, labels = clouds((30, 30))
    fold = np.arange(60) % 3
    evaluation = evaluate(values, labels * 2 - 1, SHORT, fold=fold)
    assert evaluation.fold.tolist() == fold.tolist()
    assert evaluation.labels.tolist() == (labels * 2 - 1).tolist()
    assert set(evaluation.predictions.tolist()) == {-1, 1}
    assert len(evaluation.chosen) == 3
    assert evaluation.inner.shape == (3, 7)


def test_names_as_labels_become_codes(clouds):
    values, labels = clouds((30, 30))
    evaluation = evaluate(values, np.array(["no", "yes"])[labels], SHORT)
    assert evaluation.predictions.tolist() == evaluate(values, labels, SHORT).predictions.tolist()


def test_threads_change_nothing(clouds):
    values, labels = clouds((40, 40, 20))
    one, two = (evaluate(values, labels, SHORT, jobs=jobs) for jobs in (1, 2))
    assert one.predictions.tolist() == two.predictions.tolist()
    assert one.chosen == two.chosen


def test_a_split_is_one_fold_of_an_evaluation(clouds):
    values, labels = clouds((30, 40))
    fold = stratified_folds(labels, 4)
    whole = evaluate(values, labels, SHORT)
    split = evaluate_split(values, labels, np.flatnonzero(fold != 3), np.flatnonzero(fold == 3), SHORT)
    assert split.predictions.tolist() == whole.predictions[fold == 3].tolist()
    assert split.chosen == whole.chosen[3]
    assert split.inner.tolist() == whole.inner[3].tolist()


def test_a_class_too_small_for_the_inner_folds_reduces_them(clouds, by_grid_search):
    values, labels = clouds((30, 4))
    evaluation = evaluate(values, labels, SHORT)
    fold = stratified_folds(labels, 4)
    assert_same(evaluation, by_grid_search(SVC(), "C", SHORT.grid, values, labels, fold, inner_folds=3))


def test_the_grid_need_not_be_sorted(clouds):
    values, labels = clouds((40, 40), apart=0.5)
    up, down = (evaluate(values, labels, Protocol(folds=4, grid=grid)) for grid in ((1, 10), (10, 1)))
    assert up.inner.tolist() == down.inner[:, ::-1].tolist()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros((9, 2)), r"shape \(9, 2\), and there are 10 labels"),
        (np.zeros(10), "shape"),
        (np.zeros((10, 0)), "no columns"),
        (np.where(np.arange(20).reshape(10, 2) == 6, np.nan, 0.0), r"1 of 10 vectors .*first graph 3"),
    ],
)
def test_invalid_values_are_refused(values, words):
    with pytest.raises(DataError, match=words):
        evaluate(values, np.arange(10) % 2, Protocol(folds=2))


def test_a_gram_matrix_must_be_square_and_needs_an_svm():
    labels = np.arange(10) % 2
    with pytest.raises(DataError, match="as many columns as rows"):
        evaluate(np.zeros((10, 9)), labels, gram=True)
    with pytest.raises(ConfigError, match="knn"):
        evaluate(np.eye(10), labels, Protocol("knn", folds=2), gram=True)


@pytest.mark.parametrize("fold", [[0] * 10, [0, 2] * 5, [0, -1] * 5, [0.5, 1] * 5, [0, 1]])
def test_invalid_folds_are_refused(fold):
    with pytest.raises(DataError, match="fold"):
        evaluate(np.zeros((10, 2)), np.arange(10) % 2, fold=fold)


def test_evaluation_refuses_a_class_smaller_than_folds(clouds):
    values, labels = clouds((30, 4))
    with pytest.raises(DataError, match="class 1 has 4 graphs, 10 folds asked; use --folds 4"):
        evaluate(values, labels)


@pytest.mark.realdata
@pytest.mark.parametrize(("name", "folds"), [("mutag", 10), ("proteins", 2)])
def test_real_embeddings_are_evaluated_as_by_grid_search(by_grid_search, name, folds):
    from graphsc import GraphEmbedder, open_collection

    try:
        graphs = open_collection(name)
    except NotFoundError as error:
        pytest.skip(str(error))
    values = GraphEmbedder("untrained", random_state=0).fit_transform(graphs)
    labels = np.unique(graphs.labels[:, 0], return_inverse=True)[1]
    fold = stratified_folds(labels, folds)
    predictions, chosen, _ = by_grid_search(SVC(), "C", Protocol().grid, values, labels, fold)
    evaluation = evaluate(values, labels, Protocol(folds=folds))
    assert evaluation.predictions.tolist() == predictions.tolist()
    assert evaluation.chosen == chosen


def test_all_labels_give_the_evaluation(clouds):
    values, labels = clouds((60, 40), apart=0.5)
    evaluation = few_labels(values, labels, SHORT, shares=(1.0,), seed=5)[1.0]
    whole = evaluate(values, labels, SHORT, seed=5)
    assert evaluation.predictions.tolist() == whole.predictions.tolist()
    assert evaluation.inner.tolist() == whole.inner.tolist()


def test_test_folds_are_the_same_for_every_share(clouds):
    values, labels = clouds((60, 40))
    by_share = few_labels(values, labels, SHORT, seed=2)
    assert list(by_share) == [0.01, 0.05, 0.1, 0.5, 1.0]
    for evaluation in by_share.values():
        assert evaluation.fold.tolist() == by_share[1.0].fold.tolist()


def test_more_labels_help(clouds):
    values, labels = clouds((300, 300), apart=0.6, width=10)
    by_share = few_labels(values, labels, SHORT, shares=(0.01, 1.0))
    assert by_share[1.0].accuracy > by_share[0.01].accuracy + 0.05


@pytest.mark.parametrize("classifier", ["svm", "linear-svm", "logistic", "knn"])
def test_two_graphs_of_each_class_are_enough(clouds, classifier):
    values, labels = clouds((40, 40, 40), apart=20.0)
    evaluation = few_labels(values, labels, Protocol(classifier, folds=4), shares=(0.001,))[0.001]
    # Two inner folds with one graph per class each suffice for clouds so far apart.
    assert evaluation.accuracy == 1.0


def test_only_labels_of_the_share_are_read(clouds):
    """With two labels per class in the training set, most of the other labels have no effect."""
    values, labels = clouds((50, 50), apart=0.7)
    fold = np.arange(100) % 2
    evaluation = few_labels(values, labels, SHORT, shares=(0.01,), fold=fold)[0.01]
    unread = 0
    for row in np.flatnonzero(fold == 0)[:20]:
        turned = labels.copy()
        # Trade the labels of two graphs, so that classes keep their sizes.
        other = np.flatnonzero((fold == 0) & (labels != labels[row]))[0]
        turned[[row, other]] = turned[[other, row]]
        after = few_labels(values, turned, SHORT, shares=(0.01,), fold=fold)[0.01]
        unread += after.predictions[fold == 1].tolist() == evaluation.predictions[fold == 1].tolist()
    assert unread >= 10


def test_a_training_set_may_have_a_class_of_one_graph(clouds):
    values, labels = clouds((30, 2))
    evaluation = few_labels(values, labels, Protocol(folds=2), shares=(0.1,))[0.1]
    assert 0 <= evaluation.accuracy <= 1


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5])
def test_an_invalid_share_is_refused(clouds, share):
    values, labels = clouds((30, 30))
    with pytest.raises(ConfigError, match=f"share of {share}"):
        few_labels(values, labels, SHORT, shares=(share,))


def test_a_protocol_with_a_share_of_labels_gives_the_same(clouds):
    values, labels = clouds((60, 40), apart=0.5)
    few = replace(SHORT, label_share=0.2)
    evaluation = evaluate(values, labels, few, seed=3)
    assert_equal = np.testing.assert_array_equal
    assert_equal(
        evaluation.predictions, few_labels(values, labels, SHORT, shares=(0.2,), seed=3)[0.2].predictions
    )
    fold = stratified_folds(labels, 4, 3)
    for number in range(4):
        split = evaluate_split(
            values, labels, np.flatnonzero(fold != number), np.flatnonzero(fold == number), few,
            seed=3, number=number,
        )  # fmt: skip
        assert_equal(split.predictions, evaluation.predictions[fold == number])
