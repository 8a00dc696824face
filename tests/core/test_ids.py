"""Ids that a user has typed."""

import pytest

from graphsc.core.errors import ConfigError
from graphsc.core.ids import COMPARED, check_ids, split_ids


def test_ids_are_separated_by_commas():
    assert split_ids(" a, b,,c ", {"a", "b", "c"}) == ["a", "b", "c"]


def test_an_id_may_have_commas_itself():
    assert split_ids("2,4-xylenol", {"2,4-xylenol", "phenol"}) == ["2,4-xylenol"]


def test_an_unknown_id_is_answered_with_similar_ones():
    with pytest.raises(ConfigError, match="no graph has the id 'phenl'; ids are phenol, "):
        check_ids(["phenl"], ["ethanol", "phenol"])


def test_rows_left_out_are_named():
    with pytest.raises(ConfigError, match="rows without an embedding are left out, here 2"):
        check_ids(["x"], ["a"], left_out=2)


def test_of_many_ids_those_with_the_same_start_are_compared():
    known = [f"a{number}" for number in range(COMPARED)] + ["ZINC-77"]
    with pytest.raises(ConfigError, match="ids are ZINC-77, "):
        check_ids(["ZINC-7"], known)
