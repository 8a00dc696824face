"""Compiled loops: where NumPy or torch would need many passes over small arrays.

A module of such loops is called `compiled` too and is imported only where `use_compiled()` says so, because
importing numba takes a third of a second. Every loop has an equivalent in NumPy or torch beside its caller,
for GPUs and for machines where numba does not run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])


@cache
def use_compiled() -> bool:
    """Whether numba can be imported; `GRAPHSC_COMPILED=0` answers no."""
    if os.environ.get("GRAPHSC_COMPILED", "1") == "0":
        return False
    try:
        import numba  # noqa: F401
    except Exception:  # a numba that does not fit its NumPy raises errors of many types
        return False
    return True


def compiled(function: F, *, reorder_sums: bool = False) -> F:
    """Compile a function at its first call, and cache the result on disk where that is possible.

    The compiled loop runs in one thread and releases the interpreter lock.

    Args:
        function: The loop, in the subset of Python that numba compiles.
        reorder_sums: Whether sums of floats may be added up in another order, as vector instructions need.
    """
    import numba

    fastmath: bool | set[str] = {"reassoc", "contract", "nsz"} if reorder_sums else False
    try:
        return cast(F, numba.njit(cache=True, nogil=True, fastmath=fastmath)(function))
    except RuntimeError:  # no folder to cache in
        return cast(F, numba.njit(nogil=True, fastmath=fastmath)(function))
