"""What the weights of the transfer tables were made with, and whether each method learned its own task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from graphsc.core.errors import ConfigError
from graphsc.core.files import write_atomic
from graphsc.data.datasets.catalog import NAMED
from graphsc.training.callbacks import duration
from graphsc.training.model_io import JSON_NAME, Card, read_card

HEADS = (
    "method", "molecules seen", "steps", "passes a step", "time", "its task, on unseen molecules", "chance",
    "before", "after",
)  # fmt: skip


class CardStore:
    """One model card a method, under `transfer/weights`."""

    def __init__(self, results: str | Path) -> None:
        self.folder = Path(results) / "transfer" / "weights"

    def keep(self, method: str, run: Path) -> None:
        """Copy the card of a pre-training, where it has one."""
        if (run / JSON_NAME).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self.folder / f"{method}.json", (run / JSON_NAME).read_text())

    def get(self, method: str) -> Card | None:
        """The card of a method's weights, if there is one."""
        path = self.folder / f"{method}.json"
        return read_card(path) if path.exists() else None


def check_weights(run: Path, facts: Mapping[str, object]) -> None:
    """Refuse weights that were made otherwise than a table says; what has no card is taken as it is."""
    if not (run / JSON_NAME).exists():
        return
    card = read_card(run / JSON_NAME)
    data = str(facts.get("data", "")).lower()
    found = {
        "molecules": card.graphs,
        "epochs": card.epochs,
        "precision": card.training.get("precision", "full"),
    }
    if data in NAMED:
        found["data"], facts = card.data.lower(), {**facts, "data": data}
    for key, value in found.items():
        if facts.get(key, value) != value:
            raise ConfigError(
                f"these weights of {card.method} were made with {key} {value}, not {facts[key]}",
                where=str(run), hint="move the folder away, and they are made anew",
            )  # fmt: skip


def cards_text(methods: Sequence[str], store: CardStore) -> str:
    """A row a method that was pre-trained, as Markdown."""
    cards = {method: card for method in methods if (card := store.get(method)) is not None}
    if not cards:
        return "*No weights have been made yet.*\n"
    lines = [f"| {' | '.join(HEADS)} |", "| --- |" + " ---: |" * 4 + " --- |" + " ---: |" * 3]
    for method, card in cards.items():
        task = [card.pretext or "", *map(_figure, (card.chance, card.before, card.after))]
        made = [f"{card.seen:,}", f"{card.steps:,}", f"{card.passes_per_step:.3g}", duration(card.seconds)]
        lines.append(f"| {' | '.join([method, *made, *task])} |")
    missing = len(methods) - len(cards)
    rest = f" {missing} of {len(methods)} methods have not been pre-trained yet." if missing else ""
    words = (
        "All have seen the same molecules equally often; passes through an encoder, which methods differ by, "
        "are counted. Times are of one busy core and say little."
    )
    return "\n".join(lines) + f"\n\n{words}{rest}\n"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
