"""Numbers scrambled beyond recognition: hashes of colours, and random draws that need no state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15


def mix(values: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Spread the bits of each value, differently for each salt: a bijection (SplitMix64's).

    With salts 0, 1, 2, ... the results are SplitMix64's stream of random numbers for each value.
    """
    mixed: NDArray[np.uint64] = values + np.uint64((salt + 1) * _GOLDEN % 2**64)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
