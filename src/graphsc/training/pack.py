"""A model small enough to ship: the encoder alone, sixteen bits a weight, with its card in the file."""

from __future__ import annotations

import os
from pathlib import Path

from graphsc.core.errors import ConfigError
from graphsc.core.tensors import load_tensors, save_tensors
from graphsc.methods import TrainedMethod
from graphsc.training.card import JSON_NAME, Card, read_card
from graphsc.training.model_file import load_model
from graphsc.training.shipped import find_model
from graphsc.training.sixteen_bits import to_sixteen_bits


def pack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    half: bool = True,
    name: str | None = None,
) -> Card | None:
    """Write the encoder of a run or model file, with its card under `name`; return the card, if it has one.

    `load_model` and all that embeds take the file as any other. Heads are left out: they serve training only.
    """
    path = find_model(source)
    model = load_model(path)
    method = model.method
    if not isinstance(method, TrainedMethod) or type(method).embed is not TrainedMethod.embed:
        raise ConfigError(f"the vectors of {model.recipe.method} are not those of an encoder alone")
    card = card_of(path)
    if card is not None and name is not None:
        card = Card(**{**vars(card), "name": name})
    facts: dict[str, object] = {
        "recipe": model.recipe.to_json(),
        "features": model.features.to_json(),
        "part": "encoder",
        "card": None if card is None else card.to_json(),
    }
    weights = method.encoder.state_dict()
    save_tensors(target, "model", to_sixteen_bits(weights) if half else weights, facts)
    return card


def card_of(source: str | os.PathLike[str]) -> Card | None:
    """The card of a run folder, a model file or a model by name; None where it has none."""
    path = find_model(source)
    beside = path.parent / JSON_NAME
    _, facts = load_tensors(path, "model")
    found = facts.get("card")
    if isinstance(found, dict):
        return Card.from_json(found, str(path))
    return read_card(beside) if beside.exists() else None


def size_of(path: Path) -> str:
    """Of a file, for people."""
    return f"{path.stat().st_size / 2**20:.1f} MB"
