"""Tables of labelled molecules: tasks and their kind, label counts and warnings, fewer labels."""

import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DataError
from graphsc.finetuning.dataset import (
    label_balance,
    label_warnings,
    read_dataset,
    select_labelled,
    write_balance,
)

NAN = np.nan


@pytest.fixture
def read(tmp_path):
    """`read("smiles,y", "CCO,1", ..., labels="y")`."""

    def make(*lines, **options):
        (tmp_path / "m.csv").write_text("\n".join(lines) + "\n")
        return read_dataset(tmp_path / "m.csv", **options)

    return make


def test_the_only_other_column_is_predicted(read):
    found = read("smiles,active", "CCO,1", "CCN,0", "xx,1", "CCC,")
    assert (found.kind, found.tasks, found.smiles) == ("classification", ("active",), ["CCO", "CCN", "CCC"])
    np.testing.assert_array_equal(found.labels, [[1], [0], [NAN]])
    assert found.rows.tolist() == [0, 1, 3]
    assert [(one.row, one.reason) for one in found.rejected] == [(2, "not a SMILES string")]


def test_several_columns_must_be_named_and_are_listed(read):
    lines = ("smiles,lot,active", "CCO,7,1", "CCN,8,0")
    with pytest.raises(DataError, match="--labels; columns: lot, active"):
        read(*lines)
    assert read(*lines, labels=["active"]).tasks == ("active",)
    with pytest.raises(DataError, match=r"no column 'activ'.*columns: smiles, lot, active"):
        read(*lines, labels=["activ"])


def test_a_column_called_id_holds_the_ids_and_another_can_be_named(read):
    lines = ("smiles,id,lot,active", "CCO,K-7,a,1", "xx,K-8,b,0", "CCN,K-9,c,0")
    assert read(*lines, labels="active").ids == ["K-7", "K-9"]
    assert read(*lines, labels="active", id_column="lot").ids == ["a", "c"]
    assert read(*lines, labels="*", id_column="lot", kind="classification").tasks[-1] == "active"
    found = read("smiles,id,active", "CCO,K-7,1", "CCN,K-8,0")
    assert (found.ids, found.tasks) == (["K-7", "K-8"], ("active",))
    assert read("smiles,active", "CCO,1", "CCN,0").ids is None
    assert read("smiles,id", "CCO,1", "CCN,0", labels="id").tasks == ("id",)


def test_three_classes_are_one_task_each_against_all_others(read):
    found = read("smiles,level", "CCO,low", "CCN,high", "CCC,medium", "CC,")
    assert found.tasks == ("level=high", "level=low", "level=medium")
    assert found.groups == {"level": found.tasks}
    assert found.classes["level=low"] == ("not low", "low")
    nan = [NAN] * 3
    np.testing.assert_array_equal(found.labels, [[0, 1, 0], [1, 0, 0], [0, 0, 1], nan])


def test_three_whole_numbers_are_classes_if_asked_for(read):
    lines = ("smiles,y", "CCO,1", "CCN,3", "CC,2")
    assert read(*lines).kind == "regression"
    found = read(*lines, kind="classification")
    assert found.tasks == ("y=1", "y=2", "y=3")
    np.testing.assert_array_equal(found.labels.argmax(axis=1), [0, 2, 1])


def test_censored_labels_are_missing_or_their_limit(read):
    lines = ("smiles,pic50", "CCO,5.5", "CCN,>8.4", "CC,6")
    np.testing.assert_allclose(read(*lines).labels[:, 0], [5.5, NAN, 6])
    np.testing.assert_allclose(read(*lines, censored="keep").labels[:, 0], [5.5, 8.4, 6])
    assert read(*lines).collection.notes == (
        "1 labels of 'pic50' are censored, such as '>8.4', and are left out (censored=drop)",
    )


def test_a_dropped_limit_is_still_known(read):
    lines = ("smiles,pic50", "CCO,5.5", "nonsense,6.5", "CC,>8.4", "CCC,6.1")
    assert read(*lines).limits == {(1, "pic50"): ">8.4"}
    assert read(*lines, censored="keep").limits == {}


def test_two_words_are_classes_and_the_second_in_order_is_the_positive(read):
    found = read("smiles,y", "CCO,toxic", "CCN,harmless", "CCC,toxic", "CC,")
    assert found.classes == {"y": ("harmless", "toxic")}
    np.testing.assert_array_equal(found.labels, [[1], [0], [1], [NAN]])


@pytest.mark.parametrize(
    ("negative", "positive"),
    [
        ("inactive", "active"),
        ("non-toxic", "toxic"),
        ("Not active", "Active"),
        ("Inactive", "active"),
        ("no", "yes"),
    ],
)
def test_a_class_is_positive_and_its_opposite_negative(read, negative, positive):
    found = read("smiles,y", f"CCO,{positive}", f"CCN,{negative}", f"CCC,{positive}")
    assert found.classes == {"y": (negative, positive)}
    np.testing.assert_array_equal(found.labels, [[1], [0], [1]])


def test_a_class_without_a_molecule_does_not_turn_the_other_over(read):
    found = read("smiles,y", "CCO,harmless", "xx,toxic", "CC,harmless")
    assert found.classes == {"y": ("harmless", "toxic")}
    np.testing.assert_array_equal(found.labels, [[0], [0]])


def test_large_whole_numbers_are_two_classes_and_the_larger_is_the_positive(read):
    found = read("smiles,y", f"CCO,{2**53 + 1}", f"CCN,{2**53}", "CC,nan")
    assert (found.kind, found.classes) == ("classification", {"y": (str(2**53), str(2**53 + 1))})
    np.testing.assert_array_equal(found.labels, [[1], [0], [NAN]])


def test_minus_one_and_one_are_classes(read):
    found = read("smiles,y", "CCO,-1", "CCN,1", "CCC,-1")
    assert found.kind == "classification"
    np.testing.assert_array_equal(found.labels, [[0], [1], [0]])


def test_a_single_class_keeps_its_label(read):
    np.testing.assert_array_equal(read("smiles,y", "CCO,0", "CC,0").labels, [[0], [0]])
    np.testing.assert_array_equal(read("smiles,y", "CCO,1", "CC,1").labels, [[1], [1]])


def test_numbers_make_a_regression(read):
    found = read("smiles,logp", "CCO,-0.31", "CCN,2", "CCC,1.5")
    assert found.kind == "regression"
    np.testing.assert_allclose(found.labels, [[-0.31], [2], [1.5]], rtol=1e-6)
    assert read("smiles,y", "CCO,0", "CCN,1", kind="regression").kind == "regression"


def test_unusable_columns_are_refused_by_name(read):
    with pytest.raises(DataError, match="'y' holds 31 classes"):
        read("smiles,y", *(f"CCO,word {number}" for number in range(31)))
    with pytest.raises(DataError, match="'y' holds no label"):
        read("smiles,y,z", "CCO,,1", "CCN,,0", labels="*")
    with pytest.raises(DataError, match="'y' holds classes and 'z' numbers"):
        read("smiles,y,z", "CCO,1,0.5", "CCN,0,0.25", "CC,1,7", labels="*")
    with pytest.raises(ConfigError, match="3 different numbers"):
        read("smiles,y", "CCO,1", "CCN,2", "CC,3.5", kind="classification")
    with pytest.raises(DataError, match="takes molecules"):
        read_dataset("mutag")


LABELS = np.array([[1, 1], [0, np.nan], [np.nan, 1], [1, 1], [0, 0], [1, 1]])
PARTS = np.array([0, 0, 0, 1, 2, 2])


def test_positives_negatives_and_missing_labels_of_every_part():
    counts = {
        (balance.task, balance.part): (balance.positives, balance.negatives, balance.missing)
        for balance in label_balance(LABELS, ("a", "b"), PARTS, "classification")
    }
    assert counts == {
        ("a", "train"): (1, 1, 1), ("a", "valid"): (1, 0, 0), ("a", "test"): (1, 1, 0),
        ("b", "train"): (2, 0, 1), ("b", "valid"): (1, 0, 0), ("b", "test"): (1, 1, 0),
    }  # fmt: skip


def test_counts_are_written_as_a_table(tmp_path):
    write_balance(tmp_path / "b.csv", label_balance(LABELS[:, :1], ("=a",), PARTS, "classification"))
    assert (tmp_path / "b.csv").read_text().splitlines() == [
        "task,part,missing,positives,negatives", "'=a,train,1,1,1", "'=a,valid,0,1,0", "'=a,test,0,1,1",
    ]  # fmt: skip


def test_one_class_and_few_molecules_are_warned_of():
    assert label_warnings(label_balance(LABELS, ("a", "b"), PARTS, "classification")) == [
        "b: only one class in the training set",
        "a, b: fewer than 10 test molecules of one class, scores are noise",
    ]


def test_a_regression_counts_values():
    found = label_balance(LABELS[:, :1], ("a",), PARTS, "regression")
    assert [(one.part, one.values, one.missing) for one in found] == [
        ("train", 2, 1), ("valid", 1, 0), ("test", 2, 0),
    ]  # fmt: skip
    assert label_warnings(found) == []


RARE_POSITIVES = np.array([[float(k % 10 == 0)] for k in range(100)])
ALL_ROWS = np.arange(100)


def test_smaller_fractions_are_part_of_larger_ones():
    drawn = [
        set(select_labelled(RARE_POSITIVES, ALL_ROWS, "classification", f, seed=1)) for f in (0.2, 0.5, 1.0)
    ]
    assert [len(rows) for rows in drawn] == [20, 50, 100]
    assert drawn[0] < drawn[1] < drawn[2]


@pytest.mark.parametrize("seed", range(8))
def test_both_classes_are_among_few_labels(seed):
    rows = select_labelled(RARE_POSITIVES, ALL_ROWS, "classification", 0.03, seed)
    assert len(rows) == 3
    assert set(RARE_POSITIVES[rows, 0]) == {0.0, 1.0}


def test_rows_without_any_label_are_left_out():
    labels = np.array([[1, np.nan], [np.nan, np.nan], [0, 1]])
    assert select_labelled(labels, np.arange(3), "classification").tolist() == [0, 2]


def test_a_fraction_out_of_range_is_refused():
    with pytest.raises(ConfigError, match="label fraction"):
        select_labelled(RARE_POSITIVES, ALL_ROWS, "classification", 1.5)
