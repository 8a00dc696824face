"""Tables of labels: what is predicted, of which kind it is, and what is refused."""

import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DataError
from graphsc.finetuning.dataset import read_dataset

NAN = np.nan


@pytest.fixture
def read(tmp_path):
    """`read("smiles,y", "CCO,1", ..., labels="y")`."""

    def make(*lines, **options):
        (tmp_path / "m.csv").write_text("\n".join(lines) + "\n")
        return read_dataset(tmp_path / "m.csv", **options)

    return make


def test_the_only_other_column_is_what_is_predicted(read):
    found = read("smiles,active", "CCO,1", "CCN,0", "xx,1", "CCC,")
    assert (found.kind, found.tasks, found.smiles) == ("classification", ("active",), ["CCO", "CCN", "CCC"])
    np.testing.assert_array_equal(found.labels, [[1], [0], [NAN]])
    assert found.rows.tolist() == [0, 1, 3]
    assert [(one.row, one.reason) for one in found.rejected] == [(2, "not a SMILES string")]


def test_several_columns_must_be_named_and_are_listed(read):
    lines = ("smiles,id,active", "CCO,7,1", "CCN,8,0")
    with pytest.raises(DataError, match="--labels; columns: id, active"):
        read(*lines)
    assert read(*lines, labels=["active"]).tasks == ("active",)
    with pytest.raises(DataError, match=r"no column 'activ'.*columns: smiles, id, active"):
        read(*lines, labels=["activ"])


def test_two_words_are_classes_and_the_second_in_order_is_the_positive(read):
    found = read("smiles,y", "CCO,toxic", "CCN,harmless", "CCC,toxic", "CC,")
    assert found.classes == {"y": ("harmless", "toxic")}
    np.testing.assert_array_equal(found.labels, [[1], [0], [1], [NAN]])


def test_minus_one_and_one_are_classes(read):
    found = read("smiles,y", "CCO,-1", "CCN,1", "CCC,-1")
    assert found.kind == "classification"
    np.testing.assert_array_equal(found.labels, [[0], [1], [0]])


def test_one_class_only_keeps_its_side(read):
    np.testing.assert_array_equal(read("smiles,y", "CCO,0", "CC,0").labels, [[0], [0]])
    np.testing.assert_array_equal(read("smiles,y", "CCO,1", "CC,1").labels, [[1], [1]])


def test_numbers_make_a_regression(read):
    found = read("smiles,logp", "CCO,-0.31", "CCN,2", "CCC,1.5")
    assert found.kind == "regression"
    np.testing.assert_allclose(found.labels, [[-0.31], [2], [1.5]], rtol=1e-6)
    assert read("smiles,y", "CCO,0", "CCN,1", kind="regression").kind == "regression"


def test_what_is_no_task_is_refused_with_its_column(read):
    with pytest.raises(DataError, match="'y' holds 3 classes"):
        read("smiles,y", "CCO,a", "CCN,b", "CCC,c")
    with pytest.raises(DataError, match="'y' holds no label"):
        read("smiles,y,z", "CCO,,1", "CCN,,0", labels="*")
    with pytest.raises(DataError, match="'y' holds classes and 'z' numbers"):
        read("smiles,y,z", "CCO,1,0.5", "CCN,0,0.25", "CC,1,7", labels="*")
    with pytest.raises(ConfigError, match="3 different numbers"):
        read("smiles,y", "CCO,1", "CCN,2", "CC,3", kind="classification")
    with pytest.raises(DataError, match="takes molecules"):
        read_dataset("mutag")
