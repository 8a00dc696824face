"""Results of molecules back in the rows of their source, those without a molecule among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import Ids
from graphsc.data.molecules.rejects import Rejected
from graphsc.data.strings import Strings


def every_row(
    results: NDArray[np.floating], ids: Ids, rejected: Sequence[Rejected]
) -> tuple[NDArray[np.floating], Ids, list[str]]:
    """Rows x columns for all rows of a source: NaN and a reason where one holds no molecule.

    `results` has a row for each molecule, in the order of the source. A row without a molecule keeps its
    own id; where the source has none, ids are row numbers.
    """
    rows = len(results) + len(rejected)
    lost = np.zeros(rows, dtype=bool)
    lost[[one.row for one in rejected]] = True
    full = np.full((rows, *results.shape[1:]), np.nan, dtype=results.dtype)
    full[~lost] = results
    reasons = [""] * rows
    for one in rejected:
        reasons[one.row] = one.reason
    if not isinstance(ids, Strings):
        return full, np.arange(rows, dtype=np.int64), reasons
    own = {one.row: one.id or str(one.row) for one in rejected}
    kept = iter(ids)
    return full, Strings.of(own[row] if row in own else next(kept) for row in range(rows)), reasons
