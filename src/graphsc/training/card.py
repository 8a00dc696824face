"""A model card: what a model was trained on, how, for how long, and how well it does its task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from graphsc.core.config import build
from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.core.files import write_atomic
from graphsc.core.formats import check_stamp, stamp
from graphsc.training.reporter import duration

JSON_NAME, TEXT_NAME = "card.json", "card.md"
SHOWN = 20  # epochs whose losses a person would read


@dataclass(frozen=True)
class Card:
    """Facts about a pre-trained model, as they go into its file and beside it."""

    name: str
    method: str
    preset: str
    settings: Mapping[str, object]
    encoder: str
    encoder_settings: Mapping[str, object]
    training: Mapping[str, object]
    data: str  # name of the graphs
    data_graphs: int  # that the source has
    data_hash: str  # of the graphs trained on
    data_licence: str
    graphs: int  # different ones trained on
    held_out: int
    epochs: int
    seen: int  # graphs seen, those of every epoch counted again
    steps: int
    passes_per_step: float
    seconds: float
    dimensions: int
    parameters: int  # of the encoder
    licence: str
    version: str
    torch: str
    first_loss: float | None = None
    last_loss: float | None = None
    losses: list[float] = field(default_factory=list)  # of every epoch
    pretext: str | None = None
    chance: float | None = None
    before: float | None = None
    after: float | None = None
    notes: list[str] = field(default_factory=list)

    def facts(self) -> list[tuple[str, object]]:
        """Name and value in the order of interest, for people."""
        loop = self.training
        facts: list[tuple[str, object]] = [
            ("model", self.name),
            ("method", f"{self.method}, preset {self.preset}"),
            ("encoder", f"{self.encoder}, {_listed(self.encoder_settings)}"),
            ("dimensions", self.dimensions),
            ("parameters", f"{self.parameters:,} in the encoder"),
            ("data", f"{self.graphs:,} of {self.data_graphs:,} molecules of {self.data}"),
            ("held out", f"{self.held_out:,} others"),
            ("molecules seen", f"{self.seen:,} in {self.epochs} epochs, {self.steps:,} steps"),
            ("batch and rate", f"{loop.get('batch_size')} molecules, Adam at {loop.get('learning_rate')}"),
            ("passes per step", f"{self.passes_per_step:g} through an encoder"),
            ("training time", duration(self.seconds)),
        ]
        if self.first_loss is not None and self.last_loss is not None:
            found = f"{self.first_loss:.4f} in the first epoch, {self.last_loss:.4f} in the last"
            facts.append(("loss", found))
        if 2 < len(self.losses) <= SHOWN:
            facts.append(("loss by epoch", ", ".join(f"{loss:.4f}" for loss in self.losses)))
        if self.before is not None and self.after is not None and self.chance is not None:
            found = f"{self.before:.4f} before training, {self.after:.4f} after, chance {self.chance:.4f}"
            facts.append((str(self.pretext), found))
        facts += [
            ("licence", self.licence),
            ("licence of the data", self.data_licence),
            ("made with", f"graphsc {self.version}, torch {self.torch}"),
            ("hash of the data", self.data_hash),
        ]
        return facts + [("note", note) for note in self.notes]

    def to_json(self) -> dict[str, object]:
        return {**stamp("card"), **asdict(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, object], where: str) -> Card:
        """What `to_json` gave, checked."""
        found = dict(values)
        check_stamp("card", {key: str(found.pop(key, "")) for key in stamp("card")}, where)
        try:
            return build(cls, found, "card")
        except ConfigError as error:
            raise DamagedFileError(f"model card is damaged: {error.what}", where=where) from error

    def to_markdown(self) -> str:
        """The card as a page."""
        rows = [f"| {name} | {str(value).replace('|', chr(92) + '|')} |" for name, value in self.facts()]
        settings = json.dumps(dict(self.settings), indent=1)
        return "\n".join(
            [
                f"# {self.name}",
                "",
                "An encoder of graphs, trained without labels.",
                "",
                "| | |",
                "| --- | --- |",
                *rows,
                "",
                "The score on held-out graphs says how well the method does its own task, not how useful the",
                "vectors are for yours; judge them on your labels, beside an untrained encoder.",
                "",
                "## Settings of the method",
                "",
                "```json",
                settings,
                "```",
                "",
            ]
        )


def write_card(folder: Path, card: Card) -> None:
    """`card.json` for programs and `card.md` for people."""
    write_atomic(folder / JSON_NAME, json.dumps(card.to_json(), indent=1) + "\n")
    write_atomic(folder / TEXT_NAME, card.to_markdown())


def read_card(path: Path) -> Card:
    """A `card.json`."""
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"cannot read the model card: {error}", where=str(path)) from error
    if not isinstance(values, dict):
        raise DamagedFileError("model card is damaged", where=str(path))
    return Card.from_json(values, str(path))


def _listed(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in settings.items())
