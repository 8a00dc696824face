"""Accuracies as the paper prints them (Tables 3 and 5), for the column beside ours.

They were made with other features, epochs and selection rules than ours, and mostly copied from other papers.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files


@cache
def published() -> dict[str, dict[str, tuple[float, float]]]:
    """Mean and deviation in per cent, by method and data set."""
    table = json.loads((files("graphsc.experiments") / "published.json").read_text())
    return {method: {data: (cell[0], cell[1]) for data, cell in row.items()} for method, row in table.items()}
