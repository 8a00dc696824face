"""The rules by which vectors are judged, as one value that can be printed beside every number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from graphsc.core.errors import ConfigError

Classifier = Literal["svm", "linear-svm", "logistic", "knn"]
Scale = Literal["raw", "standardised"]

C_GRID = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
K_GRID = (1.0, 3.0, 5.0, 9.0, 15.0, 25.0)

_NAMES: dict[Classifier, str] = {
    "svm": "an SVM with RBF kernel (gamma = 1 / (d var))",
    "linear-svm": "a linear SVM (squared hinge)",
    "logistic": "logistic regression",
    "knn": "nearest neighbours",
}


@dataclass(frozen=True)
class Protocol:
    """Cross-validation with the classifier's one parameter chosen inside each training part.

    Args:
        classifier: what reads the classes off the vectors.
        folds: outer folds; each graph is tested once.
        inner_folds: folds of a training part in which the parameter is chosen; fewer where its smallest class
            has fewer graphs.
        grid: the values to choose from: C, or for `knn` the number of neighbours (by default 1 to 25).
        scale: vectors as they are, or each column with mean 0 and variance 1 on the part trained on.
    """

    classifier: Classifier = "svm"
    folds: int = 10
    inner_folds: int = 5
    grid: tuple[float, ...] = C_GRID
    scale: Scale = "raw"

    def __post_init__(self) -> None:
        _one_of("classifier", self.classifier, get_args(Classifier))
        _one_of("scale", self.scale, get_args(Scale))
        for name in ("folds", "inner_folds"):
            if getattr(self, name) < 2:
                raise ConfigError(f"{name} is {getattr(self, name)}", hint="use 2 or more")
        grid = K_GRID if self.classifier == "knn" and self.grid == C_GRID else self.grid
        object.__setattr__(self, "grid", tuple(float(value) for value in grid))
        if not self.grid or not all(0 < value < float("inf") for value in self.grid):
            raise ConfigError(f"grid is {self.grid}", hint="give one or more numbers above 0")
        if self.classifier == "knn" and not all(value.is_integer() for value in self.grid):
            raise ConfigError(f"grid is {self.grid}", hint="knn needs whole numbers of neighbours")

    def words(self) -> str:
        """The protocol in two sentences."""
        parameter = "the number of neighbours" if self.classifier == "knn" else "C"
        values = ", ".join(f"{value:g}" for value in self.grid)
        judged = (
            f"Mean accuracy over {self.folds} stratified folds of {_NAMES[self.classifier]} on {self.scale} "
            f"embeddings."
        )
        if len(self.grid) == 1:
            return f"{judged} Nothing is chosen: {parameter} is {values} for all."
        return (
            f"{judged} Inside each training part {parameter} is chosen from {values} by "
            f"{self.inner_folds}-fold cross-validation; no test fold is used to choose anything."
        )

    def to_json(self) -> dict[str, object]:
        return asdict(self) | {"grid": list(self.grid)}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Protocol:
        """A protocol from what `to_json` gave; unknown keys are refused by name."""
        unknown = sorted(set(stored) - set(cls.__dataclass_fields__))
        if unknown:
            known = ", ".join(cls.__dataclass_fields__)
            raise ConfigError(f"a protocol has no {unknown[0]!r}", hint=f"it has {known}")
        values = dict(stored)
        if isinstance(values.get("grid"), list):
            values["grid"] = tuple(values["grid"])  # type: ignore[arg-type]
        return cls(**values)  # type: ignore[arg-type]


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name} is {value!r}", hint=f"use one of {', '.join(allowed)}")
