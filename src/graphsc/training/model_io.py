"""A learned method as one file: weights, recipe and the features it was trained on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import graphsc
from graphsc.core.config import build
from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.core.files import write_atomic
from graphsc.core.registry import nearest
from graphsc.core.run_folder import RunFolder
from graphsc.core.serialization import check_stamp, load_tensors, save_tensors, stamp
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.encoders.inference import embed
from graphsc.methods import METHODS, AnyMethod, FittedMethod, Recipe, TrainedMethod
from graphsc.training.callbacks import duration

# A model card: what a model was trained on, how, for how long, and how well it does its task.


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


# Weights in sixteen bits each: whole numbers and one scale a row.
#
# Half-precision floats spend five bits on exponents that weights of one layer do not need, and BatchNorm,
# whose statistics are those of the exact weights, makes the rounding larger where a column hardly varies.
# Whole numbers are sixteen times as exact at the same size.


LARGEST = 2**15 - 1
SCALE = ".scale"


def to_sixteen_bits(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every matrix as int16 with a scale for each row beside it; all else, which is small, as it is."""
    found: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.dim() != 2 or not value.is_floating_point():
            found[name] = value
            continue
        scale = value.abs().amax(1).double().clamp(min=torch.finfo(torch.float32).tiny) / LARGEST
        found[name] = (value.double() / scale[:, None]).round().to(torch.int16)
        found[name + SCALE] = scale.float()
    return found


def from_sixteen_bits(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights in 32 bits again; what was never made smaller is handed on."""
    found = {}
    for name, value in stored.items():
        if name.endswith(SCALE) and name.removesuffix(SCALE) in stored:
            continue
        scale = stored.get(name + SCALE)
        found[name] = value if scale is None else value.float() * scale[:, None]
    return found


@dataclass(frozen=True)
class Model:
    """A method ready to embed, and what must be true of the graphs it embeds."""

    method: AnyMethod
    recipe: Recipe
    features: FeatureScheme

    @property
    def dimensions(self) -> int:
        """The length of a row."""
        if isinstance(self.method, FittedMethod):
            return self.method.dimensions()
        return self.method.dimensions(self.features)

    @property
    def gram(self) -> bool:
        """True where rows are kernel values against the training graphs, not vectors."""
        return METHODS.get(self.recipe.method).kind == "gram"

    def fit_features(self, collection: GraphCollection) -> GraphCollection:
        """The same graphs with features as this model knows them, or an error that names what differs."""
        return collection.with_features(self.features)

    def embed(self, collection: GraphCollection) -> NDArray[np.float32]:
        """One row a graph, for any graphs; features are matched by meaning."""
        known = self.fit_features(collection)
        if isinstance(self.method, TrainedMethod):
            return embed(self.method, known)
        if not self.method.inductive:
            raise ConfigError(
                f"{self.recipe.method} has vectors only for the graphs it was fitted on",
                hint="fit it on these graphs, or take another method for unseen ones",
            )
        return self.method.transform(known)


def save_model(
    path: str | os.PathLike[str], method: AnyMethod, recipe: Recipe, features: FeatureScheme
) -> None:
    """Write the model, whole or not at all."""
    facts: dict[str, object] = {"recipe": recipe.to_json(), "features": features.to_json()}
    if isinstance(method, TrainedMethod):
        save_tensors(path, "model", method.state_dict(), facts)
        return
    arrays = method.state()
    facts["dtypes"] = {name: value.dtype.str for name, value in arrays.items()}
    save_tensors(path, "model", {name: _as_tensor(value) for name, value in arrays.items()}, facts)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model; nothing is loaded in part."""
    tensors, facts = load_tensors(path, "model")
    damaged = "model file is damaged"
    try:
        stored = cast(dict[str, dict[str, object]], facts)
        recipe = Recipe.from_json(stored["recipe"])
        features = FeatureScheme.from_json(stored["features"])
        packed = facts.get("part") == "encoder"
        if packed:
            tensors = from_sixteen_bits(tensors)
        shapes = {name: tuple(value.shape) for name, value in tensors.items()}
        method = _build(recipe, features, shapes, str(path), packed)
    except (KeyError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError) as error:
        raise DamagedFileError(f"{damaged}: {error}", where=str(path)) from error
    if isinstance(method, TrainedMethod):
        (method.encoder if packed else method).load_state_dict(tensors)
        return Model(method.eval(), recipe, features)
    try:
        dtypes = stored["dtypes"]
        method.load_state(
            {name: value.numpy().view(np.dtype(str(dtypes[name]))) for name, value in tensors.items()}
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFileError(f"{damaged}: {error}", where=str(path)) from error
    return Model(method, recipe, features)


def _build(
    recipe: Recipe, features: FeatureScheme, shapes: Mapping[str, tuple[int, ...]], where: str, packed: bool
) -> AnyMethod:
    """The method with fresh weights, once its shapes are known to be those of the file."""
    if recipe.encoder is not None:
        check_sketch(lambda: _learned(recipe.build(features, seed=0), packed), shapes, where)
    method = recipe.build(features, seed=0)
    learned = _learned(method, packed)
    if learned is not None:
        check_weights(learned, shapes, where)
    return method


def _learned(method: AnyMethod, packed: bool) -> nn.Module | None:
    """What a file's weights are of: a packed one has the encoder alone, which is all that embedding needs."""
    if not isinstance(method, TrainedMethod):
        return None
    return method.encoder if packed else method


def check_sketch(
    make: Callable[[], nn.Module | None], shapes: Mapping[str, tuple[int, ...]], where: str
) -> None:
    """Refuse weights of another module than `make` makes, without memory for the module.

    A small file may ask for a model of any size.
    """
    sketch = None
    # An encoder of somebody else's may look at its numbers and cannot be sketched without them.
    with suppress(RuntimeError, NotImplementedError), torch.device("meta"):
        sketch = make()
    if sketch is not None:
        check_weights(sketch, shapes, where)


def check_weights(module: nn.Module, shapes: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Refuse weights of another method, width or depth, naming the first difference of each kind."""
    expected = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    missing, extra = sorted(expected.keys() - shapes.keys()), sorted(shapes.keys() - expected.keys())
    other = [name for name in expected if name in shapes and expected[name] != shapes[name]]
    problems = []
    if missing:
        problems.append(f"{len(missing)} weights are missing, {missing[0]} first")
    if extra:
        problems.append(f"{len(extra)} weights have no place, {extra[0]} first")
    if other:
        problems.append(f"{other[0]} has shape {shapes[other[0]]}, not {expected[other[0]]}")
    if problems:
        raise ConfigError(f"these weights are of another model: {'; '.join(problems)}", where=where)


# Unsigned numbers wider than a byte are stored as signed ones of the same width: torch has little for them.
_SIGNED = {np.dtype(f"uint{bits}"): np.dtype(f"int{bits}") for bits in (16, 32, 64)}


def _as_tensor(array: NDArray[np.generic]) -> Tensor:
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array.view(_SIGNED.get(array.dtype, array.dtype)))


# Models by name: those that come with the package, and those in folders of the user's.


ENDING = ".safetensors"


def model_folders() -> list[Path]:
    """$GRAPHSC_MODELS (separated like $PATH), then the package's own."""
    own = [Path(part) for part in os.environ.get("GRAPHSC_MODELS", "").split(os.pathsep) if part]
    return [*own, Path(graphsc.__file__).parent / "models"]


def shipped_models() -> dict[str, Path]:
    """Model files by name; the first folder that has a name wins."""
    found: dict[str, Path] = {}
    for folder in model_folders():
        for path in sorted(folder.glob(f"*{ENDING}")):
            found.setdefault(path.name.removesuffix(ENDING), path)
    return found


def find_model(source: str | os.PathLike[str]) -> Path:
    """The model file of a run folder, a model file itself, or that of a name."""
    path = Path(source)
    if path.is_dir():
        return RunFolder(path).model
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    named = shipped_models()
    if path.name not in named:
        raise NotFoundError(
            f"there is no run folder, model file or model called {path.name!r}",
            where=f"models by name are in {', '.join(map(str, model_folders()))}",
            hint=nearest(path.name, named),
        )
    return named[path.name]


# A model small enough to ship: the encoder alone, sixteen bits a weight, with its card in the file.


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
