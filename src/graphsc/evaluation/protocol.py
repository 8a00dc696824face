"""The rules by which embeddings are evaluated, as one value that is printed beside every number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from graphsc.core.errors import ConfigError

Classifier = Literal["svm", "linear-svm", "logistic", "knn"]
Scale = Literal["raw", "standardised"]
Splitting = Literal["stratified", "size"]
InnerOrder = Literal["shuffled", "file"]
ORDERS: dict[InnerOrder, str] = {"file": "in the order of the file", "shuffled": "of shuffled graphs"}

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
    """Nested cross-validation: the classifier's one parameter is chosen inside each training set.

    Args:
        classifier: predicts the classes from the embeddings.
        folds: number of outer folds; each graph is tested once.
        inner_folds: number of folds of a training set in which the parameter is chosen; fewer where its
            smallest class has fewer graphs.
        grid: values to choose from: C, or for `knn` the number of neighbours (by default 1 to 25).
        scale: "raw" vectors, or "standardised" to mean 0 and variance 1 by the training set.
        label_share: share of each training set that has labels; each class keeps at least two graphs.
        splitting: "stratified" folds at random, or by "size": two folds, the first with the larger half of
            each class, so that a classifier trained on small graphs is tested on large ones and vice versa.
        inner_order: inner folds of graphs that are "shuffled" or in the order of the "file". Files are rarely
            in random order: on NCI1 similar graphs are adjacent, which makes inner folds in file order harder
            than the test folds, and the parameter chosen on them is not the best for the test.
    """

    classifier: Classifier = "svm"
    folds: int = 10
    inner_folds: int = 5
    grid: tuple[float, ...] = C_GRID
    scale: Scale = "raw"
    label_share: float = 1.0
    splitting: Splitting = "stratified"
    inner_order: InnerOrder = "shuffled"

    def __post_init__(self) -> None:
        _one_of("classifier", self.classifier, get_args(Classifier))
        _one_of("scale", self.scale, get_args(Scale))
        _one_of("splitting", self.splitting, get_args(Splitting))
        _one_of("inner_order", self.inner_order, get_args(InnerOrder))
        if not 0 < self.label_share <= 1:
            raise ConfigError(
                f"a share of {self.label_share} of the labels", hint="use shares above 0 and up to 1"
            )
        if self.splitting == "size":
            object.__setattr__(self, "folds", 2)
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
        """The protocol in two or three sentences; results store them and tables print them."""
        parameter = "the number of neighbours" if self.classifier == "knn" else "C"
        values = ", ".join(f"{value:g}" for value in self.grid)
        folds = (
            f"{self.folds} stratified folds"
            if self.splitting == "stratified"
            else "two halves, from small graphs to large ones and back,"
        )
        few = f", of which {100 * self.label_share:g} % have labels," if self.label_share < 1 else ""
        summary = f"Mean accuracy over {folds} of {_NAMES[self.classifier]} on {self.scale} embeddings."
        if len(self.grid) == 1:
            labels = f" Of each training part {100 * self.label_share:g} % have labels." if few else ""
            return f"{summary}{labels} Nothing is chosen: {parameter} is {values} for all."
        return (
            f"{summary} Inside each training part{few} {parameter} is chosen from {values} by "
            f"{self.inner_folds}-fold cross-validation {ORDERS[self.inner_order]}; no test fold is used to "
            "choose anything."
        )

    def to_json(self) -> dict[str, object]:
        """All settings."""
        return asdict(self) | {"grid": list(self.grid)}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Protocol:
        """A protocol from the output of `to_json`; unknown keys are refused."""
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
