"""Positions drawn evenly over a long list: some to learn from, others never to be learned from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError
from graphsc.core.random import numpy_generator


class Split(NamedTuple):
    """Rising positions, none in both."""

    training: NDArray[np.int64]
    held_out: NDArray[np.int64]


def spread(total: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` of `total` positions, rising: one from each of `count` runs of equal length."""
    bounds = np.arange(count + 1, dtype=np.int64) * total // max(count, 1)
    return rng.integers(bounds[:-1], bounds[1:])


def split_spread(total: int, training: int | None, held_out: int, seed: int) -> Split:
    """Positions to train on and to hold out, both spread over the whole; the seed decides them.

    `training` None is all that is not held out. At most a tenth of the whole is held out.
    """
    if held_out < 0:
        raise ConfigError(f"the number of graphs held out must not be negative, not {held_out}")
    held_out = min(held_out, total // 10)
    most = total - held_out
    training = most if training is None else training
    if not 1 <= training <= most:
        raise ConfigError(
            f"cannot train on {training:,} of {total:,} graphs, of which {held_out:,} are held out",
            hint=f"ask for 1 to {most:,}",
        )
    rng = numpy_generator(seed, "molecules")
    drawn = spread(total, training + held_out, rng)
    out = np.zeros(len(drawn), dtype=bool)
    out[spread(len(drawn), held_out, rng)] = True
    return Split(drawn[~out], drawn[out])
