"""Several sources of molecules with sampling weights, as one text: `moses:1,zinc250k:3`."""

from __future__ import annotations

from pathlib import Path

from graphsc.core.errors import ConfigError
from graphsc.data.datasets.catalog import NAMED


def parse_sources(text: str) -> list[tuple[str, float]]:
    """The sources and weights of `moses:1,zinc250k:3`; a source without a weight has weight 1.

    A name or file of its own, and a generator such as `motifs:500`, is one source.

    Raises:
        ConfigError: A weight is not a positive number, or a source is named twice.
    """
    if _is_source(text):
        return [(text, 1.0)]
    items = [item.strip() for item in text.split(",")]
    pairs: list[tuple[str, float]] = []
    for item in items:
        name, colon, weight = item.rpartition(":")
        if not colon or _is_source(item):
            name, weight = item, "1"
        elif not _is_source(name):
            if len(items) == 1:
                return [(text, 1.0)]
            name, weight = item, "1"
        try:
            number = float(weight)
        except ValueError:
            number = -1.0
        if not 0 < number < 1000:
            raise ConfigError(
                f"the weight of {name} must be a positive number below 1,000, not {weight!r}",
                hint="write SOURCE:WEIGHT, with a comma between sources",
            )
        if not name:
            raise ConfigError("a source has no name", where=text, hint="write SOURCE:WEIGHT,SOURCE:WEIGHT")
        pairs.append((name, number))
    names = [name.lower() for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} is named twice", hint="give it once, with the weight it should have")
    return pairs


def is_union(text: str) -> bool:
    """Whether this names several sources, or one with a weight."""
    return not _is_source(text) and parse_sources(text) != [(text, 1.0)]


def _is_source(text: str) -> bool:
    try:
        return text.lower() in NAMED or Path(text).exists()
    except OSError:  # too long for a file name
        return False
