"""Numbers that the paper prints in Tables 3 to 5, and those of the papers of further methods.

They were made with other features, epochs and selection rules than ours. The paper copied most of them
from other papers.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

Cells = dict[str, dict[str, tuple[float, float]]]


@cache
def published() -> Cells:
    """Accuracy by method and data set: mean and deviation in per cent."""
    return _read("published.json")


@cache
def published_transfer() -> Cells:
    """ROC-AUC by pre-training method and molecule data set: mean and deviation in per cent."""
    return _read("published_transfer.json")


def _read(name: str) -> Cells:
    table = json.loads((files("graphsc.experiments") / name).read_text())
    return {method: {data: (cell[0], cell[1]) for data, cell in row.items()} for method, row in table.items()}
