"""What the generators share."""

from __future__ import annotations

import numpy as np
import pytest

from graphsc.core.errors import ConfigError
from graphsc.data.readers.synthetic import asked_number, both_ways, check_number


@pytest.mark.parametrize(
    ("source", "option", "expected"),
    [("motifs", None, 7), ("motifs:30", None, 30), ("motifs", 40, 40), ("motifs:30", 30, 30)],
)
def test_the_number_asked_for_is_the_sources_the_options_or_the_default(
    source: str, option: int | None, expected: int
) -> None:
    assert asked_number(source, option, 7) == expected


def test_a_number_out_of_range_is_refused() -> None:
    check_number(1)
    check_number(100_000_000)
    for number in (0, 100_000_001):
        with pytest.raises(ConfigError, match="number of graphs must be from 1 to 100,000,000"):
            check_number(number)


def test_both_ways_keeps_the_edges_of_a_graph_together() -> None:
    ends = both_ways(np.array([1, 2, 3]), np.array([7, 8, 9]), np.array([2, 0, 1]))
    assert ends.tolist() == [1, 2, 7, 8, 3, 9]
