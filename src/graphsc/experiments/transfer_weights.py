"""Weights of pre-training methods for trials of transfer: found, or made where they are missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graphsc.experiments.transfer_cards import CardStore, check_weights
from graphsc.experiments.transfer_run import Weights, weights_in
from graphsc.training.callbacks import Reporter
from graphsc.training.pretrain import pretrain


def ready_weights(
    made_from: Mapping[str, object], folder: Path, results: Path, reporter: Reporter | None = None
) -> Weights:
    """From a method to its weights in a sub-folder of its name, made of `made_from` and of nothing else.

    Their card is kept beside the results.
    """

    def make(method: str, path: Path) -> None:
        facts = dict(made_from)
        pretrain(facts.pop("data", "moses"), method, out=path, reporter=reporter or Reporter(), **facts)  # type: ignore[arg-type]

    cards, find = CardStore(results), weights_in(folder, make)

    def weights_of(method: str) -> Path:
        path = Path(find(method))
        check_weights(path, made_from)
        cards.keep(method, path)
        return path

    return weights_of
