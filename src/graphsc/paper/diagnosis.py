"""What training does to embeddings, epoch by epoch: accuracy by layer, what can be read off, and gradients.

GraphSC is trained at two sizes of the encoder with two learning rates. Seeds are development seeds, and the
probe is a cheap one with nothing to choose, so the numbers explain the tables and do not belong to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc.core.files import read_json, write_json
from graphsc.core.random import torch_generator
from graphsc.core.tables import Table, Value
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.encoders import Gin
from graphsc.evaluation.cross_validation import class_codes, evaluate
from graphsc.evaluation.protocol import Protocol
from graphsc.kernels.weisfeiler_lehman import count_colours, wl_labels
from graphsc.losses import effective_rank
from graphsc.methods.base import TrainedMethod, preserved
from graphsc.report.curves import Line, line_panels
from graphsc.report.figure import save_figure
from graphsc.training.callbacks import Callback, Reporter
from graphsc.training.train import embed_clean, train
from graphsc.training.trainer import Trainer, TrainSettings

DATA = "nci1"
METHOD = "graphsc"
SEEDS = (1000, 1001)  # development seeds: no table is made of them
EPOCHS = (0, 1, 2, 5, 10, 20)
SIZES = ((3, 32), (5, 128))
LEARNING_RATES = (0.01, 0.001)
# The cheapest probe that shows differences of a point: nothing is chosen.
PROBE = Protocol(folds=5, inner_folds=2, grid=(10.0,), scale="standardised")
COLOURS = 100  # most frequent Weisfeiler-Lehman colours after two rounds
BATCH = 128  # graphs by which gradients are measured
TERMS = {"self": "L_se", "masked": "L_ma", "factor": "L_fa", "absolute": "L_ab"}


@dataclass(frozen=True)
class Case:
    """A size of the encoder, a learning rate and a seed."""

    depth: int
    width: int
    learning_rate: float
    seed: int

    @property
    def label(self) -> str:
        """All but the seed."""
        return f"{self.depth} x {self.width}, rate {self.learning_rate:g}"


@dataclass(frozen=True)
class Snapshot:
    """Embeddings after some epochs.

    Attributes:
        epoch: Finished epochs; 0 is the random initialisation.
        accuracy: Of the whole embedding, in per cent.
        layers: Of each layer by itself.
        rank: Effective rank of the embeddings.
        colours: Share of the variance of counts of Weisfeiler-Lehman colours that a linear map explains.
        size: Likewise of the number of nodes.
        active: Share of triplets within the margin, on clean statistics of one batch.
        gradients: Norm of each term's gradient at the encoder.
    """

    epoch: int
    accuracy: float
    layers: Sequence[float]
    rank: float
    colours: float
    size: float
    active: float
    gradients: Mapping[str, float]


def cases() -> list[Case]:
    """All cases, the first seed of each first."""
    return [
        Case(depth, width, rate, seed) for seed in SEEDS for depth, width in SIZES for rate in LEARNING_RATES
    ]


def explained_variance(rows: NDArray[np.floating], targets: NDArray[np.floating], seed: int) -> float:
    """R2 of a ridge regression on standardised rows, on graphs that it was not fitted to.

    Standardised values are clipped at 5: a column that is nearly constant on the training graphs would send
    the prediction of a single unusual graph anywhere.

    Args:
        rows: n x d.
        targets: n x t; columns are weighted by their variance.
        seed: Of the five folds.
    """
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    clip = FunctionTransformer(np.clip, kw_args={"a_min": -5.0, "a_max": 5.0})
    model = make_pipeline(StandardScaler(), clip, Ridge(alpha=10.0))
    predicted = cross_val_predict(model, rows, targets, cv=KFold(5, shuffle=True, random_state=seed))
    # A single target comes back without its column.
    residual = np.square(targets - predicted.reshape(targets.shape)).sum()
    return float(1 - residual / np.square(targets - targets.mean(axis=0)).sum())


def colour_counts(collection: GraphCollection) -> NDArray[np.float64]:
    """Square roots of the counts of the most frequent colours of the second round, n x `COLOURS`."""
    counts, _ = count_colours(collection, wl_labels(collection, 2)[2:])
    dense = np.asarray(counts.todense(), dtype=np.float64)
    frequent = np.argsort(-dense.sum(axis=0), kind="stable")[:COLOURS]
    return np.sqrt(dense[:, frequent])


def gradient_norms(method: TrainedMethod, batch: GraphBatch, seed: int) -> tuple[dict[str, float], float]:
    """Norm of each term's gradient at the encoder, and the share of active triplets, on one batch."""
    with preserved(method, training=True):
        encoded = method.encode(method.views(batch, torch_generator(seed, "diagnosis")))
        losses = method.objective(encoded)
        weights = list(method.encoder.parameters())
        norms = {}
        for name, loss in losses.items():
            parts = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
            norms[name] = float(sum(float(part.square().sum()) for part in parts if part is not None) ** 0.5)
        with torch.no_grad():
            active = method.extra_metrics(encoded)["active_triplets"]
    return norms, active


class Snapshots(Callback):
    """Takes a snapshot at the start and after some epochs."""

    def __init__(self, collection: GraphCollection, seed: int) -> None:
        assert collection.labels is not None  # noqa: S101 - the data sets of the paper have labels
        self.collection = collection
        self.seed = seed
        self.codes, _ = class_codes(collection.labels[:, 0])
        self.colours = colour_counts(collection)
        self.nodes = np.sqrt(np.diff(collection.node_ptr).astype(np.float64))[:, None]
        self.taken: list[Snapshot] = []

    def on_train_start(self, trainer: Trainer) -> None:
        self.on_epoch_end(trainer)

    def on_epoch_end(self, trainer: Trainer) -> None:
        if trainer.epoch not in EPOCHS:
            return
        method = trainer.method
        rows = embed_clean(method, self.collection)
        assert isinstance(method.encoder, Gin)  # noqa: S101 - the default encoder
        layers = np.split(rows, method.encoder.depth, axis=1)
        batch = GraphBatch.gather(
            self.collection, np.arange(min(BATCH, len(self.collection)), dtype=np.int64)
        )
        gradients, active = gradient_norms(method, batch, self.seed)
        self.taken.append(
            Snapshot(
                trainer.epoch,
                self._accuracy(rows),
                [self._accuracy(layer) for layer in layers],
                float(effective_rank(torch.from_numpy(rows))),
                explained_variance(rows, self.colours, self.seed),
                explained_variance(rows, self.nodes, self.seed),
                active,
                gradients,
            )
        )

    def _accuracy(self, rows: NDArray[np.float32]) -> float:
        return 100 * evaluate(rows, self.codes, PROBE, seed=self.seed).accuracy


def diagnose(case: Case, collection: GraphCollection) -> list[Snapshot]:
    """Train one case and take its snapshots."""
    snapshots = Snapshots(collection, case.seed)
    train(
        collection,
        METHOD,
        settings={"encoder.depth": case.depth, "encoder.width": case.width},
        training=TrainSettings(epochs=max(EPOCHS), learning_rate=case.learning_rate, seed=case.seed),
        device="cpu",
        callbacks=[snapshots],
    )
    return snapshots.taken


def missing_cases(results: Path) -> list[Case]:
    """The cases that are not stored."""
    return [case for case in cases() if not _path(results, case).exists()]


def run_diagnosis(results: Path, reporter: Reporter) -> None:
    """Run the cases that are not stored; each is stored as it ends."""
    missing = missing_cases(results)
    collection = open_collection(DATA) if missing else None
    for number, case in enumerate(missing, start=1):
        assert collection is not None  # noqa: S101 - opened where a case is missing
        reporter.log(f"case {number} of {len(missing)}: {case.label}, seed {case.seed}")
        snapshots = [asdict(snapshot) for snapshot in diagnose(case, collection)]
        path = _path(results, case)
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = {"case": asdict(case), "graphs": collection.content_hash, "snapshots": snapshots}
        write_json(path, stored, indent=1)


def read_diagnosis(results: Path) -> dict[Case, list[Snapshot]]:
    """The stored cases."""
    stored: dict[Case, list[Snapshot]] = {}
    for case in cases():
        if (path := _path(results, case)).exists():
            content = read_json(path, "diagnosis")
            snapshots = content["snapshots"]
            assert isinstance(snapshots, list)  # noqa: S101 - the file's hash is right
            stored[case] = [Snapshot(**snapshot) for snapshot in snapshots]
    return stored


def _path(results: Path, case: Case) -> Path:
    name = f"{case.depth}x{case.width}-{case.learning_rate:g}-{case.seed}.json"
    return results / "diagnosis" / name


def _lines(stored: Mapping[Case, Sequence[Snapshot]], value: str, term: str | None = None) -> dict[str, Line]:
    """A line per case, over the seeds that have run."""
    lines = {}
    for label in dict.fromkeys(case.label for case in cases()):
        runs = [snapshots for case, snapshots in stored.items() if case.label == label]
        if runs:
            y = [
                [getattr(snap, value) if term is None else snap.gradients[term] for snap in run]
                for run in runs
            ]
            x = np.array([snapshot.epoch for snapshot in runs[0]], dtype=np.float64)
            lines[label] = Line(x, np.array(y, dtype=np.float64))
    return lines


def _layer_lines(stored: Mapping[Case, Sequence[Snapshot]], label: str) -> dict[str, Line]:
    """A line for all layers together, and one per layer."""
    runs = [snapshots for case, snapshots in stored.items() if case.label == label]
    x = np.array([snapshot.epoch for snapshot in runs[0]], dtype=np.float64)
    lines = {
        f"layer {layer + 1}": Line(x, np.array([[snap.layers[layer] for snap in run] for run in runs]))
        for layer in range(len(runs[0][0].layers))
    }
    return {"all layers": Line(x, np.array([[snap.accuracy for snap in run] for run in runs])), **lines}


def write_diagnosis(results: Path, images: Path) -> str:
    """Draw the three figures into a folder and return the page's part with its table."""
    stored = read_diagnosis(results)
    if not stored:
        return "Not run yet: `graphsc reproduce diagnosis`.\n"
    labels = [
        label for label in dict.fromkeys(case.label for case in cases()) if _lines(stored, "rank").get(label)
    ]
    figures = {
        "diagnosis-layers": line_panels(
            {label: _layer_lines(stored, label) for label in labels}, x_label="epoch", band=True, share=True
        ),
        "diagnosis-content": line_panels(
            {
                "WL colours: variance explained": _lines(stored, "colours"),
                "number of nodes: variance explained": _lines(stored, "size"),
                "effective rank": _lines(stored, "rank"),
                "share of active triplets": _lines(stored, "active"),
            },
            x_label="epoch", y_label="", band=True,
        ),
        "diagnosis-gradients": line_panels(
            {f"gradient of {text} at the encoder": _lines(stored, "", term) for term, text in TERMS.items()},
            x_label="epoch", y_label="norm", band=True,
        ),
    }  # fmt: skip
    for axis in figures["diagnosis-content"].axes[:2]:
        axis.set_ylim(0, 1)  # shares: a change of a thousandth should not fill the panel
    images.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        save_figure(figure, images / f"{name}.png")
    captions = {
        "diagnosis-layers": "Accuracy by layer",
        "diagnosis-content": "What can be read off, effective rank, and active triplets",
        "diagnosis-gradients": "Gradient of each term at the encoder",
    }
    pictures = "\n".join(f"![{captions[name]}](images/{name}.png)\n" for name in figures)
    return f"{_table(stored, labels).markdown()}\n{pictures}"


def _table(stored: Mapping[Case, Sequence[Snapshot]], labels: Sequence[str]) -> Table:
    """Before and after training, means over seeds."""
    rows: list[tuple[Value, ...]] = []
    for label in labels:
        runs = [snapshots for case, snapshots in stored.items() if case.label == label]
        for position, when in ((0, "random initialisation"), (-1, "trained")):
            snaps = [run[position] for run in runs]

            def mean(value: str, snaps: Sequence[Snapshot] = snaps) -> float:
                return float(np.mean([getattr(snap, value) for snap in snaps]))

            gradients = {term: float(np.mean([snap.gradients[term] for snap in snaps])) for term in TERMS}
            total = sum(gradients.values())
            rows.append(
                (
                    label, when, f"{mean('accuracy'):.1f}", f"{mean('rank'):.1f}", f"{mean('colours'):.2f}",
                    f"{mean('size'):.2f}", f"{100 * mean('active'):.0f} %",
                    *(f"{100 * gradients[term] / total:.0f} %" for term in TERMS),
                )
            )  # fmt: skip
    columns = (
        "encoder", "", "accuracy", "effective rank", "WL colours", "nodes", "active triplets",
        *(f"gradient of {text}" for text in TERMS.values()),
    )  # fmt: skip
    seeds = max(sum(case.label == label for case in stored) for label in labels)
    title = f"GraphSC on NCI1 before and after {max(EPOCHS)} epochs, mean of {seeds} development seed(s)"
    return Table(columns, tuple(rows), title)
