"""A fine-tuning run as a model of properties: predictions, their spread, the nearest training molecule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.rows import hash_of
from graphsc.evaluation.metrics import Kind
from graphsc.finetuning.ensemble import ENSEMBLE, Ensemble, load_ensemble
from graphsc.finetuning.features import BITS, RawFeatures, ecfp, nearest_by_tanimoto, packed
from graphsc.finetuning.model import Predictor, load_predictor, predictors_of
from graphsc.training.model_files import fraction_folders

DOMAIN = "domain.safetensors"


@dataclass(frozen=True)
class Domain:
    """The training molecules of a model: a name of each, and its packed fingerprint."""

    names: tuple[str, ...]
    fingerprints: NDArray[np.uint64]  # molecules x words

    @classmethod
    def of(cls, names: Sequence[str], smiles: Sequence[str]) -> Domain:
        return cls(tuple(name.replace("\n", " ") for name in names), packed(ecfp(smiles)))

    def nearest(self, smiles: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The most similar training molecule of each molecule, and the Tanimoto similarity of their ECFP."""
        return nearest_by_tanimoto(packed(ecfp(smiles)), self.fingerprints)

    def save(self, path: Path) -> None:
        text = "\n".join(self.names).encode("utf-8", "replace")
        tensors = {
            "names": torch.from_numpy(np.frombuffer(text, np.uint8).copy()),
            "fingerprints": torch.from_numpy(self.fingerprints.view(np.int64).copy()),
        }
        save_tensors(path, "domain", tensors, {"molecules": len(self.names)})

    @classmethod
    def load(cls, path: Path) -> Domain:
        tensors, facts = load_tensors(path, "domain")
        try:
            names = tuple(tensors["names"].numpy().tobytes().decode().split("\n"))
            fingerprints = tensors["fingerprints"].numpy().view(np.uint64)
            if fingerprints.shape != (len(names), BITS // 64) or facts["molecules"] != len(names):
                raise ValueError("names and fingerprints are not of one number")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedFileError(f"domain file is damaged: {error}", where=str(path)) from error
        return cls(names, fingerprints)


@dataclass(frozen=True)
class PropertyModel:
    """All that predicts the properties of a molecule: fine-tuned encoders, an ensemble, a domain."""

    predictors: tuple[Predictor, ...]  # one per seed; none where the model has no fine-tuned encoder
    ensemble: Ensemble | None = None
    domain: Domain | None = None
    hashes: tuple[str, ...] = ()  # of the files

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.predictors[0].tasks if self.ensemble is None else self.ensemble.tasks

    @property
    def kind(self) -> Kind:
        return self.predictors[0].kind if self.ensemble is None else self.ensemble.kind

    @property
    def classes(self) -> Mapping[str, tuple[str, str]]:
        return self.predictors[0].classes if self.ensemble is None else self.ensemble.classes

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        return self.predictors[0].groups if self.ensemble is None else self.ensemble.groups

    @property
    def members(self) -> str | None:
        """What the spread is over: seeds, parts or trees; None for a single model, which has no spread."""
        return "seeds" if self.ensemble is None else self.ensemble.members

    @property
    def count(self) -> int:
        """How many models the prediction is a mean of."""
        if self.ensemble is None:
            return len(self.predictors)
        return len(self.ensemble.models) + len(self.predictors)

    def predict(
        self, collection: GraphCollection, smiles: Sequence[str], raw: RawFeatures | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probabilities or values, and their spread over `members`, 0 without any; both molecules x tasks."""
        ensemble = self.ensemble
        if ensemble is None or list(ensemble.weights) == ["encoder"]:
            blocks = self.predictors[0].features.blocks
            raw = RawFeatures.of(smiles, blocks) if raw is None else raw
            stacked = np.stack([one.predict(collection, raw=raw) for one in self.predictors])
            mean, spread = stacked.mean(axis=0, dtype=np.float64), stacked.std(axis=0, dtype=np.float64)
            if ensemble is None or self.kind == "regression":
                return mean, spread
        scores = ensemble.part_scores(collection, smiles, self.predictors, raw)
        predicted = ensemble.combine(scores)
        if self.members == "trees":
            spread = ensemble.spread_over_trees(collection, smiles, raw)
        elif self.members != "seeds":
            spread = ensemble.spread(scores)
        return predicted, spread

    def decision(
        self, collection: GraphCollection, smiles: Sequence[str], raw: RawFeatures | None = None
    ) -> NDArray[np.float64]:
        """Log-odds of the prediction, or its value: molecules x tasks."""
        if self.ensemble is None:
            scores = np.stack([one.scores(collection, smiles, raw) for one in self.predictors])
            mean: NDArray[np.float64] = scores.mean(axis=0, dtype=np.float64)
            return mean
        return self.ensemble.decision(self.ensemble.part_scores(collection, smiles, self.predictors, raw))

    def save(self, folder: Path) -> None:
        """Write all files side by side into a folder, from which `read` reads them; for workers."""
        for number, predictor in enumerate(self.predictors):
            predictor.save(folder / f"seed-{number:04d}.safetensors")
        if self.ensemble is not None:
            self.ensemble.save(folder / ENSEMBLE)
        if self.domain is not None:
            self.domain.save(folder / DOMAIN)

    @classmethod
    def read(cls, folder: Path, device: str = "cpu") -> PropertyModel:
        """Read what `save` wrote."""
        ensemble, domain = folder / ENSEMBLE, folder / DOMAIN
        return cls(
            tuple(load_predictor(file, device) for file in sorted(folder.glob("seed-*.safetensors"))),
            load_ensemble(ensemble) if ensemble.exists() else None,
            Domain.load(domain) if domain.exists() else None,
        )


def load_property_model(model: str | Path, rule: str = "best", device: str = "cpu") -> PropertyModel:
    """Read the model of a fine-tuning run, of one of its seeds, or of one file.

    Of a folder of several label fractions, that of the largest. The ensemble of a run is made of the models
    of the rule `best`; with `last` the prediction is the mean over the fine-tuned encoders alone.
    """
    path = Path(model)
    folder = next(reversed(fraction_folders(path).values()), path)
    ensemble = domain = None
    hashes = []
    if folder.is_dir():
        if rule == "best" and (folder / ENSEMBLE).exists():
            ensemble = load_ensemble(folder / ENSEMBLE)
            hashes.append(hash_of(folder / ENSEMBLE))
        if (folder / DOMAIN).exists():
            domain = Domain.load(folder / DOMAIN)
            hashes.append(hash_of(folder / DOMAIN))
    predictors: list[Predictor] = []
    if ensemble is None or "encoder" in ensemble.weights:
        files = predictors_of(folder, rule)
        predictors = [load_predictor(file, device) for file in files]
        first = predictors[0] if ensemble is None else ensemble
        for predictor, file in zip(predictors, files, strict=True):
            if (predictor.tasks, predictor.kind) != (first.tasks, first.kind):
                raise ConfigError("the models of this run predict different tasks", where=str(file))
            hashes.append(hash_of(file))
    return PropertyModel(tuple(predictors), ensemble, domain, tuple(hashes))
