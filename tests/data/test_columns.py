"""Feature tables and the encoding of columns."""

from __future__ import annotations

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.data.columns import GAP_LIMIT, Column, FeatureTable, encode_column, encode_integers

ATOM = Column("atom", 3, ("C", "N", "O"))


@pytest.fixture
def table():
    return FeatureTable.of(3, np.array([[0], [2], [1]]), [ATOM], np.array([[0.5], [1.5], [2.5]]), ["mass"])


def test_an_empty_table_knows_only_its_length():
    table = FeatureTable.empty(4)
    assert (len(table), table.codes.shape, table.floats.shape) == (4, (4, 0), (4, 0))


@pytest.mark.parametrize(("cardinality", "dtype"), [(1, np.uint8), (256, np.uint8), (257, np.uint16)])
def test_codes_are_kept_in_the_smallest_type(cardinality, dtype):
    codes = np.array([[0], [cardinality - 1]])
    table = FeatureTable.of(2, codes, [Column("a", cardinality)])
    assert table.codes.dtype == dtype
    assert table.codes.tolist() == codes.tolist()


@pytest.mark.parametrize("code", [-1, 3, 256, 258])
def test_a_code_that_narrowing_would_change_is_refused(code):
    with pytest.raises(DataError, match=r"column 'atom' has a code that is not in 0 \.\. 2"):
        FeatureTable.of(2, np.array([[0], [code]]), [ATOM])


def test_more_columns_than_described_are_refused():
    with pytest.raises(DataError, match="2 columns of codes but 1 columns are described"):
        FeatureTable.of(1, np.zeros((1, 2), int), [ATOM])


def test_floats_without_names_are_numbered():
    assert FeatureTable.of(2, floats=np.zeros((2, 2))).float_names == ("attribute0", "attribute1")


def test_fewer_names_than_floats_are_refused():
    with pytest.raises(DataError, match="2 attributes but 1 names"):
        FeatureTable.of(2, floats=np.zeros((2, 2)), float_names=["a"])


def test_a_column_with_too_few_values_is_refused():
    with pytest.raises(DataError, match="column 'atom' has 3 codes but 2 values"):
        Column("atom", 3, ("C", "N"))


def test_taking_rows_takes_codes_and_floats(table):
    taken = table.take(np.array([2, 0, 2]))
    assert taken.codes.tolist() == [[1], [0], [1]]
    assert taken.floats.tolist() == [[2.5], [0.5], [2.5]]


def test_a_slice_shares_memory(table):
    assert np.shares_memory(table.take(slice(1, 3)).floats, table.floats)


def test_concatenation_keeps_order(table):
    joined = FeatureTable.concatenate([table, table.take(slice(0, 1))])
    assert joined.codes.ravel().tolist() == [0, 2, 1, 0]
    assert joined.floats.ravel().tolist() == [0.5, 1.5, 2.5, 0.5]


def test_concatenation_of_other_columns_is_refused(table):
    with pytest.raises(DataError, match="part 1 has other columns than part 0"):
        FeatureTable.concatenate([table, FeatureTable.empty(2)])


def test_equality_sees_codes_floats_and_meaning(table):
    assert table == table.take(np.arange(3))
    assert table != table.take(np.array([0, 1, 1]))
    assert table != FeatureTable.of(3, table.codes, [Column("atom", 3)], table.floats, ["mass"])
    assert table != FeatureTable.of(3, table.codes, [ATOM], table.floats + 1, ["mass"])
    assert table != "a table"


def test_encoded_values_are_numbered_in_sorted_order():
    codes, column = encode_column("atom", np.array(["O", "C", "O", "N"]))
    assert codes.tolist() == [2, 0, 2, 1]
    assert column == ATOM


def test_encoded_integers_keep_gaps():
    codes, column = encode_integers("label", np.array([5, 2, 5]))
    assert codes.tolist() == [3, 0, 3]
    assert column == Column("label", 4, ("2", "3", "4", "5"))


def test_encoded_integers_may_be_negative():
    codes, column = encode_integers("label", np.array([-1, 1], dtype=np.int8))
    assert codes.tolist() == [0, 2]
    assert column.values == ("-1", "0", "1")


@pytest.mark.parametrize(("high", "cardinality"), [(GAP_LIMIT - 1, GAP_LIMIT), (GAP_LIMIT, 2)])
def test_encoded_integers_drop_gaps_beyond_the_limit(high, cardinality):
    codes, column = encode_integers("label", np.array([0, high]))
    assert column.cardinality == cardinality
    assert [column.values[code] for code in codes] == ["0", str(high)]


def test_encoding_no_integers_gives_no_codes():
    codes, column = encode_integers("label", np.zeros(0, int))
    assert (len(codes), column.cardinality) == (0, 1)


def test_columns_keep_their_order_and_names() -> None:
    atom, ring = Column("atom", 2, ("C", "N")), Column("ring", 3)
    categories = [(np.array([0, 1]), atom), (np.array([2, 0]), ring)]
    table = FeatureTable.from_columns(
        2, categories, [("q", np.array([0.5, 1.5])), ("r", np.array([2.0, 3.0]))]
    )
    assert table.columns == (atom, ring)
    assert table.codes.tolist() == [[0, 2], [1, 0]]
    assert table.float_names == ("q", "r")
    assert table.floats.tolist() == [[0.5, 2.0], [1.5, 3.0]]


def test_no_columns_give_a_table_of_rows_only() -> None:
    assert FeatureTable.from_columns(3, []) == FeatureTable.empty(3)
