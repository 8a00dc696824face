"""How deep and wide an encoder may be."""

from __future__ import annotations

from graphsc.core.errors import ConfigError

MOST_LAYERS = 100  # each is a module of its own: a file that asks for a billion would never be read


def check_size(depth: int, width: int) -> None:
    """Refuse an encoder of no size, or of more layers than anybody needs, before any is made."""
    if depth < 1 or width < 1:
        raise ConfigError(f"an encoder needs depth and width of at least 1, not {depth} x {width}")
    if depth > MOST_LAYERS:
        raise ConfigError(f"an encoder of {depth} layers is too deep", hint=f"use up to {MOST_LAYERS}")
