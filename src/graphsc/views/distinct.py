"""Distinct elements of each segment by number, drawn without a random key for every element."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.views import fast
from graphsc.views.fast import (
    ascending,
    compress,
    mark,
    pointer,
    positions,
    repeat,
    running_count,
    take,
)

# Up to this many elements for each one drawn, flags for all are cheaper than sorting the drawn ones.
FLAGS = 32
FEW = 64  # up to so many are drawn again one by one


def distinct(sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """`counts[g]` of `sizes[g]` elements, uniformly; numbers over all segments end to end, rising.

    Draw, and draw again what is there already: a uniform set, because no element is favoured.
    """
    start = sizes.cumsum(0) - sizes
    short = sizes <= FLAGS * counts
    few = counts.masked_fill(short, 0)
    parts = []
    if bool(few.any()):
        parts.append(_sorting(start, sizes, few, generator))
    if len(parts) == 0 or bool((counts * short).any()):
        counts, pool = counts * short, sizes * short
        chosen = positions(_flagging(pool, counts, generator))
        parts.append(chosen.add_(repeat(start - pointer(pool)[:-1], counts, len(chosen))))
    return parts[0] if len(parts) == 1 else ascending(torch.cat(parts))


def _flagging(sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Mask over all elements; where most are wanted, those that are not are drawn."""
    ptr = pointer(sizes)
    total = int(ptr[-1])
    most = 2 * counts > sizes
    wanted = torch.where(most, sizes - counts, counts)
    flags = torch.zeros(total, dtype=torch.bool, device=sizes.device)
    mark(flags, _draw(ptr[:-1], sizes, wanted, generator), True)
    missing = wanted - take(running_count(flags), ptr).diff()
    number = int(missing.sum())
    low, size = repeat(ptr[:-1], missing, number), repeat(sizes, missing, number)
    while number > FEW:
        new = ascending(_uniform(low, size, generator))
        again = _repeated(new) | take(flags, new)
        mark(flags, new, True)
        low, size = compress(low, again), compress(size, again)
        number = len(low)
    if number:
        _one_by_one(flags, low, size, generator)
    return flags ^ repeat(most, sizes, total) if bool(most.any()) else flags


def _one_by_one(flags: Tensor, low: Tensor, size: Tensor, generator: torch.Generator) -> None:
    """Flag one more for each; for so few that whole rounds would cost more."""
    view = flags.numpy() if fast.numpy_serves(flags) else flags
    uniform: list[float] = []
    for first, length in zip(low.tolist(), size.tolist(), strict=True):
        place = None
        while place is None or view[place]:
            if not uniform:
                drawn = torch.rand(4 * FEW, generator=generator, device=flags.device, dtype=torch.float64)
                uniform = drawn.tolist()
            place = first + int(uniform.pop() * length)
        view[place] = True


def _sorting(start: Tensor, sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """The drawn numbers, rising; for few out of many, where hardly any comes twice."""
    kept = ascending(_draw(start, sizes, counts, generator))
    total = len(kept)
    again = _repeated(kept)
    while bool(again.any()):
        # Sorting leaves every number within its own segment's places.
        low, size = repeat(start, counts, total), repeat(sizes, counts, total)
        new = _uniform(compress(low, again), compress(size, again), generator)
        kept = ascending(torch.cat([compress(kept, ~again), new]))
        again = _repeated(kept)
    return kept


def _draw(start: Tensor, sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    total = int(counts.sum())
    return _uniform(repeat(start, counts, total), repeat(sizes, counts, total), generator)


def _uniform(low: Tensor, size: Tensor, generator: torch.Generator) -> Tensor:
    """A whole number from low to low + size - 1 for each, int64."""
    uniform = torch.rand(len(low), generator=generator, device=low.device, dtype=torch.float64)
    # Below one, so that the product lies below the size: a double rounds it down where it must.
    return uniform.mul_(size).long().add_(low)


def _repeated(rising: Tensor) -> Tensor:
    """Mask of values that equal the one before."""
    mask = torch.zeros(len(rising), dtype=torch.bool, device=rising.device)
    torch.eq(rising[1:], rising[:-1], out=mask[1:])
    return mask
