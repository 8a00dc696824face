"""Model files: a trained method with its recipe and feature scheme; packed models; model cards."""

from __future__ import annotations

import copy
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from graphsc.core.config import build
from graphsc.core.errors import (
    ConfigError,
    DamagedFileError,
    DivergedError,
    GraphscWarning,
)
from graphsc.core.files import read_json, write_if_changed, write_json
from graphsc.core.run_folder import RunFolder
from graphsc.core.serialization import (
    check_stamp,
    digest_of,
    load_tensors,
    save_tensors,
    stamp,
    stored_kind,
)
from graphsc.core.tables import Table, escape_markdown
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.data.readers import open_collection
from graphsc.encoders import ENCODERS
from graphsc.encoders.inference import embed
from graphsc.methods import METHODS, AnyMethod, FittedMethod, Recipe, TrainedMethod
from graphsc.methods.registry import is_object
from graphsc.training.callbacks import duration
from graphsc.training.distributed import pick_device
from graphsc.training.model_files import ENDING as ENDING
from graphsc.training.model_files import FILES as FILES
from graphsc.training.model_files import available_models as available_models
from graphsc.training.model_files import find_model as find_model
from graphsc.training.model_files import fine_tuned_files as fine_tuned_files
from graphsc.training.model_files import fraction_folders as fraction_folders
from graphsc.training.model_files import model_file as model_file

if TYPE_CHECKING:
    from graphsc.training.export import PygModule


@dataclass(frozen=True)
class Model:
    """A method ready to embed, with its recipe and the feature scheme it expects."""

    method: AnyMethod
    recipe: Recipe
    features: FeatureScheme

    @property
    def dimensions(self) -> int:
        """The length of an embedding."""
        if isinstance(self.method, FittedMethod):
            return self.method.dimensions()
        return self.method.dimensions(self.features)

    @property
    def gram(self) -> bool:
        """Whether rows are kernel values with the training graphs instead of embeddings."""
        return isinstance(self.method, FittedMethod) and METHODS.get(self.recipe.method).kind == "gram"

    def to(self, device: str | torch.device) -> Model:
        """Move the weights to a device, in place, as torch does; gives the model.

        Args:
            device: `auto`, `cpu`, `cuda`, `cuda:NUMBER`, `mps`, or a device of torch.
        """
        chosen = pick_device(device)
        if isinstance(self.method, TrainedMethod):
            self.method.to(chosen)
        return self

    def to_pyg_module(self) -> PygModule:
        """The trained encoder as a plain torch module that takes PyG batches.

        Raises:
            ConfigError: The method has no weights, so that there is no module.
        """
        from graphsc.training.export import PygModule

        if not isinstance(self.method, TrainedMethod):
            raise ConfigError(f"{self.recipe.method} has no encoder", hint="train a method that learns one")
        return PygModule(copy.deepcopy(self.method), self.features)

    def fit_features(self, collection: GraphCollection) -> GraphCollection:
        """Match the graphs' features to the model's by name and value; unknown ones are refused."""
        return collection.with_features(self.features)

    def embed(self, collection: object) -> NDArray[np.float32]:
        """Embed any graphs, after matching their features by name and value: graphs x dimensions.

        Args:
            collection: A collection, or anything else that `open_collection` takes, such as PyG graphs.
        """
        matched = self.fit_features(open_collection(collection))
        if isinstance(self.method, TrainedMethod):
            return embed(self.method, matched)
        if not self.method.inductive:
            raise ConfigError(
                f"{self.recipe.method} has vectors only for the graphs it was fitted on",
                hint="fit it on these graphs, or use another method for unseen ones",
            )
        return self.method.transform(matched)


def check_finite(module: nn.Module, name: str) -> None:
    """Refuse weights and statistics that are not finite: every embedding would be.

    Raises:
        DivergedError: One is not; the message has its name.
    """
    for key, value in module.state_dict().items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise DivergedError(
                f"{name} has weights that are not finite: {key}", hint="lower the learning rate or set clip"
            )


def save_model(
    path: str | os.PathLike[str],
    method: AnyMethod,
    recipe: Recipe,
    features: FeatureScheme,
    run: Mapping[str, object] | None = None,
    card: Card | None = None,
) -> None:
    """Write a model file atomically; one with the same content stays.

    Args:
        path: The file.
        method: What to save.
        recipe: How it was built.
        features: The feature scheme it expects.
        run: The result of `run_facts`, for the model of a run folder.
        card: The model's card, for a file that has none beside it.

    Raises:
        DivergedError: A weight is not finite.
    """
    facts: dict[str, object] = {"recipe": recipe.to_json(), "features": features.to_json()}
    if run is not None:
        facts["run"] = dict(run)
    if card is not None:
        facts["card"] = card.to_json()
    if isinstance(method, TrainedMethod):
        check_finite(method, recipe.method)
        save_tensors(path, "model", method.state_dict(), facts)
        return
    arrays = method.state()
    facts["dtypes"] = {name: value.dtype.str for name, value in arrays.items()}
    save_tensors(path, "model", {name: _as_tensor(value) for name, value in arrays.items()}, facts)


def load_model(
    path: str | os.PathLike[str],
    device: str | torch.device = "cpu",
    *,
    encoder: nn.Module | None = None,
    method: TrainedMethod | None = None,
) -> Model:
    """Read a model file, completely or not at all; of a fine-tuned model, its encoder without the head.

    Args:
        path: The file.
        device: As in `Model.to`.
        encoder: For a model whose encoder was passed as an object: another such object, which gets the
            weights. Code is never read from a file.
        method: Likewise for a method that was passed as an object.
    """
    if stored_kind(path) == "predictor":
        return _fine_tuned_encoder(path).to(device)
    tensors, facts = load_tensors(path, "model")
    _check_run(Path(path), facts.get("run"))
    damaged = "model file is damaged"
    try:
        stored = cast(dict[str, dict[str, object]], facts)
        _check_known(stored["recipe"], str(path))
        recipe = Recipe.from_json(stored["recipe"])
        features = FeatureScheme.from_json(stored["features"])
        packed = facts.get("part") == "encoder"
        if packed:
            tensors = dequantize_int16(tensors)
        shapes = {name: tuple(value.shape) for name, value in tensors.items()}
        built = _build(recipe, features, shapes, str(path), packed, encoder, method)
    except (KeyError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError) as error:
        raise DamagedFileError(f"{damaged}: {error}", where=str(path)) from error
    if isinstance(built, TrainedMethod):
        (built.encoder if packed else built).load_state_dict(tensors)
        return Model(built.eval(), recipe, features).to(device)
    try:
        dtypes = stored["dtypes"]
        built.load_state(
            {name: value.numpy().view(np.dtype(str(dtypes[name]))) for name, value in tensors.items()}
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFileError(f"{damaged}: {error}", where=str(path)) from error
    return Model(built, recipe, features)


def _fine_tuned_encoder(path: str | os.PathLike[str]) -> Model:
    tensors, facts = load_tensors(path, "predictor")
    try:
        settings = cast(dict[str, object], facts["encoder_settings"])
        features = FeatureScheme.from_json(cast(dict[str, object], facts["features"]))
        # Fine-tuning keeps BatchNorm's running statistics. No method of the registry trained these weights.
        recipe = Recipe("untrained", {"batch_norm_embedding": "running"}, str(facts["encoder"]), settings)
        own = {name: value for name, value in tensors.items() if name.startswith("encoder.")}
        method = _build(
            recipe,
            features,
            {name: tuple(value.shape) for name, value in own.items()},
            str(path),
            packed=False,
            encoder=None,
            method=None,
        )
    except (KeyError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError) as error:
        raise DamagedFileError(f"predictor file is damaged: {error}", where=str(path)) from error
    assert isinstance(method, TrainedMethod)  # noqa: S101 - of the recipe above
    method.load_state_dict(own)
    return Model(method.eval(), recipe, features)


def run_facts(config: Mapping[str, object]) -> dict[str, object]:
    """What tells the model of a run from that of another one, from the run's config."""
    training, data = (cast("dict[str, object]", config[part]) for part in ("training", "data"))
    return {"method": config["method"], "seed": training["seed"], "graphs": data["content_hash"]}


def _check_run(path: Path, stated: object) -> None:
    """Refuse the model of another run in a run folder; models elsewhere belong to no run."""
    folder = RunFolder(path.parent)
    if path != folder.model or not isinstance(stated, dict) or not folder.config.exists():
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphscWarning)  # its settings are not used here
            expected = run_facts(folder.load_config())
    except (KeyError, TypeError, ConfigError):
        return  # a config that says nothing of it
    for key, value in expected.items():
        if stated.get(key) != value:
            raise DamagedFileError(
                f"this model is of another run: {key} {stated.get(key)}, the run's config has {value}",
                where=str(path), hint="put the run's own model back, or train again in another folder",
            )  # fmt: skip


def _check_known(recipe: Mapping[str, object], where: str) -> None:
    """Refuse a model of a method or an encoder that is in no registry: most often one of a plug-in."""
    known: dict[str, Callable[[str], bool]]
    known = {"method": METHODS.__contains__, "encoder": ENCODERS.__contains__}
    for kind, is_known in known.items():
        name = recipe[kind]
        if isinstance(name, str) and not is_object(name) and not is_known(name):
            raise ConfigError(
                f"this model has the {kind} {name!r}, which is not known here", where=where,
                hint="load the file that defines it: --plugin FILE.py, or load_plugin(FILE) in Python",
            )  # fmt: skip


def _build(
    recipe: Recipe,
    features: FeatureScheme,
    shapes: Mapping[str, tuple[int, ...]],
    where: str,
    packed: bool,
    encoder: nn.Module | None,
    method: TrainedMethod | None,
) -> AnyMethod:
    """Build the method with random weights, after checking that its shapes are those of the file."""
    if is_object(recipe.encoder):  # it exists, so that its size can be no surprise
        built = recipe.build(features, seed=0, encoder=encoder, method=method)
        module = _stored_module(built, packed)
        assert module is not None  # noqa: S101 - a method with an encoder is trained
        check_weights(module, shapes, where)
        return built
    if recipe.encoder is not None:
        check_on_meta(lambda: _stored_module(recipe.build(features, seed=0), packed), shapes, where)
    built = recipe.build(features, seed=0)
    module = _stored_module(built, packed)
    if module is not None:
        check_weights(module, shapes, where)
    return built


def _stored_module(method: AnyMethod, packed: bool) -> nn.Module | None:
    """The module whose weights a file holds: a packed file has the encoder only, which embedding needs."""
    if not isinstance(method, TrainedMethod):
        return None
    return method.encoder if packed else method


def check_on_meta(
    make: Callable[[], nn.Module | None], shapes: Mapping[str, tuple[int, ...]], where: str
) -> None:
    """Check the shapes against the module that `make` builds on the meta device, without allocating it.

    A small file may describe a model of any size.
    """
    module = None
    # A plug-in encoder may read its weights while it is built, which the meta device does not support.
    with suppress(RuntimeError, NotImplementedError), torch.device("meta"), _SkipRandomValues():
        module = make()
    if module is not None:
        check_weights(module, shapes, where)


class _SkipRandomValues(TorchFunctionMode):
    """Draw no random values: on the meta device that imports torch's compiler, which takes a second."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if func.__name__ in ("uniform_", "normal_", "kaiming_uniform_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def check_weights(module: nn.Module, shapes: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Raise a ConfigError that names the differences if weights of these shapes do not fit the module."""
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


# torch hardly supports unsigned integers wider than a byte: they are stored as signed ones of equal width.
_SIGNED = {np.dtype(f"uint{bits}"): np.dtype(f"int{bits}") for bits in (16, 32, 64)}


def _as_tensor(array: NDArray[np.generic]) -> Tensor:
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array.view(_SIGNED.get(array.dtype, array.dtype)))


JSON_NAME, TEXT_NAME = "card.json", "card.md"
MOST_LOSSES = 20  # more epochs than these are not listed one by one


@dataclass(frozen=True)
class Card:
    """A model card: how a pre-trained model was trained, on what, and how well it does its pretext task."""

    name: str
    method: str
    preset: str
    settings: Mapping[str, object]
    encoder: str
    encoder_settings: Mapping[str, object]
    training: Mapping[str, object]
    data: str  # name of the source
    data_graphs: int  # in the source
    data_hash: str  # of the training graphs
    data_licence: str
    graphs: int  # trained on
    held_out: int
    epochs: int
    seen: int  # graphs over all epochs
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
    losses: list[float] = field(default_factory=list)  # by epoch
    pretext: str | None = None
    chance: float | None = None
    before: float | None = None
    after: float | None = None
    notes: list[str] = field(default_factory=list)

    def facts(self) -> list[tuple[str, object]]:
        """Names and values for display, the most important first."""
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
            ("batch and rate", f"{loop.get('batch_size')} molecules, {_optimiser(loop)}"),
            ("passes per step", f"{self.passes_per_step:g} through an encoder"),
            ("training time", duration(self.seconds)),
        ]
        if self.first_loss is not None and self.last_loss is not None:
            text = f"{self.first_loss:.4f} in the first epoch, {self.last_loss:.4f} in the last"
            facts.append(("loss", text))
        if 2 < len(self.losses) <= MOST_LOSSES:
            facts.append(("loss by epoch", ", ".join(f"{loss:.4f}" for loss in self.losses)))
        if self.before is not None and self.after is not None and self.chance is not None:
            text = f"{self.before:.4f} before training, {self.after:.4f} after, chance {self.chance:.4f}"
            facts.append((str(self.pretext), text))
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
        """Check and read the output of `to_json`; `where` is the file that errors name."""
        fields = dict(values)
        check_stamp("card", {key: str(fields.pop(key, "")) for key in stamp("card")}, where)
        try:
            return build(cls, fields, "card")
        except ConfigError as error:
            raise DamagedFileError(f"model card is damaged: {error.what}", where=where) from error

    def to_markdown(self) -> str:
        """The card as a Markdown page."""
        facts = Table(("fact", "value"), tuple((name, str(fact)) for name, fact in self.facts()), align="ll")
        return f"""# {escape_markdown(self.name)}

An encoder of graphs, trained without labels.

{facts.markdown()}
The score on held-out graphs says how well the method does its pretext task, not how useful
the embeddings are for yours; evaluate them on your labels, beside an untrained encoder.

## Settings of the method

```json
{json.dumps(dict(self.settings), indent=1)}
```
"""


def write_card(folder: Path, card: Card) -> None:
    """Write `card.json` and `card.md` into a folder."""
    write_json(folder / JSON_NAME, card.to_json(), indent=1)
    write_if_changed(folder / TEXT_NAME, card.to_markdown())


def read_card(path: Path) -> Card:
    """Read a `card.json`."""
    return Card.from_json(read_json(path, "model card"), str(path))


def _optimiser(loop: Mapping[str, object]) -> str:
    name = {"adamw": "AdamW", "sgd": "SGD"}.get(str(loop.get("optimiser")), "Adam")
    return f"{name} at {loop.get('learning_rate')}"


def _listed(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in settings.items())


def pack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    half: bool = True,
    name: str | None = None,
    licence: str | None = None,
    notes: Sequence[str] = (),
) -> Card | None:
    """Write a small model file: the encoder without projection heads, with `half` quantised to 16 bits.

    It can be used wherever a model file can. The card of the source is included, with `name`, `licence` and
    `notes` if given. A packed source keeps its weights to the last bit.

    Returns:
        The card, or None if the source has none.

    Raises:
        ConfigError: The method does not embed by its encoder alone.
    """
    path = find_model(source)
    model = load_model(path)
    method = model.method
    if not isinstance(method, TrainedMethod) or not method.embeds_by_encoder:
        raise ConfigError(f"the vectors of {model.recipe.method} are not those of an encoder alone")
    card = card_of(path)
    if card is not None and name is not None:
        card = replace(card, name=name)
    if card is not None:
        card = replace(card, licence=licence or card.licence, notes=[*card.notes, *notes])
    facts: dict[str, object] = {
        "recipe": model.recipe.to_json(),
        "features": model.features.to_json(),
        "part": "encoder",
        "card": None if card is None else card.to_json(),
    }
    tensors, stored = load_tensors(path, "model")
    if half and stored.get("part") != "encoder":
        tensors = quantize_int16(method.encoder.state_dict())
    elif not half:
        tensors = method.encoder.state_dict()
    save_tensors(target, "model", tensors, facts)
    return card


def weights_hash(source: str | os.PathLike[str]) -> str:
    """SHA-256 of what embeddings are computed with: weights, settings and features, but not the card."""
    path = find_model(source)
    tensors, facts = load_tensors(path, stored_kind(path) or "model")
    facts.pop("card", None)
    return digest_of(tensors, {"facts": json.dumps(facts, sort_keys=True)})


def card_of(source: str | os.PathLike[str]) -> Card | None:
    """The card of a run folder, model file or model name; None if it has none."""
    path = find_model(source)
    _, facts = load_tensors(path, "model")
    stored = facts.get("card")
    if isinstance(stored, dict):
        return Card.from_json(stored, str(path))
    beside = path.parent / JSON_NAME
    return read_card(beside) if beside.exists() else None


def size_of(path: Path) -> str:
    """The size of a file, such as `7.5 MB`."""
    return f"{path.stat().st_size / 2**20:.1f} MB"


# Quantisation to 16-bit integers with one scale per row. Half-precision floats spend five bits on exponents
# that the weights of one layer do not need, and BatchNorm, whose statistics are those of the exact weights,
# amplifies the rounding where a column hardly varies. Integers are sixteen times as exact at the same size.

LARGEST = 2**15 - 1
SCALE = ".scale"


def quantize_int16(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Store every matrix as int16 with one scale per row in `NAME.scale`; other tensors stay as they are."""
    stored: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.dim() != 2 or not value.is_floating_point():
            stored[name] = value
            continue
        scale = value.abs().amax(1).double().clamp(min=torch.finfo(torch.float32).tiny) / LARGEST
        stored[name] = (value.double() / scale[:, None]).round().to(torch.int16)
        stored[name + SCALE] = scale.float()
    return stored


def dequantize_int16(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `quantize_int16`, in 32 bits; tensors without a scale stay as they are."""
    weights = {}
    for name, value in stored.items():
        if name.endswith(SCALE) and name.removesuffix(SCALE) in stored:
            continue
        scale = stored.get(name + SCALE)
        weights[name] = value if scale is None else value.float() * scale[:, None]
    return weights
