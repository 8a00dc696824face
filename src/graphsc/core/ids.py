"""Ids that a user has typed, compared with those that there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from graphsc.core.errors import ConfigError

COMPARED = 5_000  # ids among which similar ones are looked for; more would take seconds


def split_ids(text: str, known: Collection[str]) -> list[str]:
    """The ids of a text, which are separated by commas; an id may also have commas itself."""
    whole = text.strip()
    return [whole] if whole in known else [word.strip() for word in whole.split(",") if word.strip()]


def check_ids(wanted: Iterable[str], known: Iterable[str], left_out: int = 0) -> None:
    """Refuse an id that no graph has.

    Args:
        wanted: The ids that were asked for.
        known: The ids of all graphs.
        left_out: Rows without an embedding, whose ids are not among the known ones.

    Raises:
        ConfigError: An id is unknown; the hint names similar ones.
    """
    ids = dict.fromkeys(known)
    for identity in wanted:
        if identity in ids:
            continue
        hint = f"ids are {', '.join(_similar(identity, list(ids)))}, ..."
        if left_out:
            hint += f"; rows without an embedding are left out, here {left_out:,}"
        raise ConfigError(f"no graph has the id {identity!r}", hint=hint)


def _similar(identity: str, known: list[str]) -> list[str]:
    import difflib

    if len(known) > COMPARED:
        start = identity[:2].lower()
        alike = [other for other in known if other.lower().startswith(start)]
        known = [*alike, *known[:3]][:COMPARED]
    return difflib.get_close_matches(identity, known, n=3) or known[:3]
