"""Linear models on frozen vectors of the eight MoleculeNet sets, and their curve over a pre-training run.

The split is by scaffold. Choices between models are made on the validation part: `part="valid"` takes the
test molecules away before anything is computed, so that no choice can depend on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.core.files import write_atomic
from graphsc.core.registry import nearest
from graphsc.core.tables import Table
from graphsc.evaluation.metrics import roc_auc, tasks_of
from graphsc.finetuning.baselines import Rows, ecfp, fit_tasks, frozen_vectors
from graphsc.finetuning.dataset import MoleculeDataset, read_dataset
from graphsc.finetuning.splits import TEST, TRAIN, VALID, Parts, split_molecules
from graphsc.training.model_files import find_model
from graphsc.training.model_io import card_of, weights_hash

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETS = ("BBBP", "Tox21", "ToxCast", "SIDER", "ClinTox", "MUV", "HIV", "BACE")
QUICK = ("BBBP", "BACE", "SIDER", "ClinTox")  # seconds each
ECFP = "ecfp"
Part = Literal["valid", "test"]
Progress = Callable[[str, int, int], None]  # what is done, tasks done, tasks in total


@dataclass(frozen=True)
class Score:
    """The mean ROC-AUC over the tasks of one set, of a linear model on one kind of vectors."""

    model: str  # name of the model, or `ecfp`
    digest: str  # of the model's weights; empty for fingerprints
    seen: int  # molecules seen in pre-training
    data: str
    part: Part
    roc_auc: float
    tasks: int  # with both classes in this part

    @property
    def key(self) -> tuple[str, str, str]:
        """What is scored, on what."""
        return self.digest or self.model, self.data, self.part


def check_sets(names: Sequence[str]) -> list[str]:
    """The sets under their own names, in the order given.

    Raises:
        ConfigError: One is not among the eight.
    """
    known = {name.lower(): name for name in SETS}
    for name in names:
        if name.lower() not in known:
            raise ConfigError(f"{name!r} is none of the eight sets", hint=nearest(name, SETS))
    return [known[name.lower()] for name in names]


def models_of(source: str | Path) -> list[Path]:
    """The snapshots of a run folder that has some, in the order of molecules seen; else the model itself."""
    snapshots = sorted(Path(source).glob("snapshots/*.safetensors")) if Path(source).is_dir() else []
    if snapshots:
        return snapshots
    path = find_model(source)
    if not path.exists():
        raise NotFoundError("there is no run folder, model file or model", where=str(source))
    return [path]


def frozen_scores(
    models: Sequence[str | Path],
    sets: Sequence[str] = QUICK,
    *,
    part: Part = "valid",
    fingerprints: bool = True,
    store: Path | None = None,
    progress: Progress = lambda what, done, total: None,
) -> list[Score]:
    """Fit a linear model per task on the vectors of each model, and on fingerprints, and score it.

    Args:
        models: Model files.
        sets: Names among the eight sets.
        part: The part that is scored. The strength of the linear model is chosen on the validation part.
        fingerprints: Score ECFP fingerprints beside them.
        store: A file of JSON lines: scores in it are not computed again, and new ones are added.
        progress: Called after each task.
    """
    names = check_sets(sets)
    wanted: list[tuple[str, str, Path | None, int]] = []  # name, digest, file, molecules seen
    for model in models:
        path = Path(model)
        card = card_of(path)
        wanted.append(
            (path.stem if card is None else card.name, weights_hash(path), path, card.seen if card else 0)
        )
    if fingerprints:
        wanted.append((ECFP, "", None, 0))
    stored = {score.key: score for score in read_scores(store)} if store is not None else {}
    scores: list[Score] = []
    for data in names:
        opened: tuple[MoleculeDataset, Parts] | None = None
        for name, digest, file, seen in wanted:
            known = stored.get((digest or name, data, part))
            if known is None:
                opened = opened or _open(data, part)
                what = f"{data}: {name}" + (f" after {seen:,} molecules" if seen else "")
                value, tasks = _score(*opened, file, part, lambda d, t, what=what: progress(what, d, t))  # type: ignore[misc]
                known = Score(name, digest, seen, data, part, round(value, 6), tasks)
                stored[known.key] = known
                if store is not None:
                    write_scores(store, list(stored.values()))
            scores.append(known)
    return scores


def score_vectors(data: str, model: Path | None, part: Part = "valid") -> tuple[float, int]:
    """The mean ROC-AUC of linear models on vectors of a model file, or on ECFP, and the number of tasks."""
    return _score(*_open(data, part), model, part, lambda done, total: None)


def _open(data: str, part: Part) -> tuple[MoleculeDataset, Parts]:
    """A set and its scaffold split; without its test molecules where the validation part is scored."""
    molecules = read_dataset(data)
    parts = split_molecules(molecules.smiles)
    if part == "test":
        return molecules, parts
    rows = np.flatnonzero(parts != TEST)
    return replace(
        molecules,
        collection=molecules.collection.take(rows),
        smiles=[molecules.smiles[row] for row in rows.tolist()],
        rows=molecules.rows[rows],
    ), parts[rows]


def _score(
    molecules: MoleculeDataset,
    parts: Parts,
    model: Path | None,
    part: Part,
    progress: Callable[[int, int], None],
) -> tuple[float, int]:
    train = parts == TRAIN
    rows: Rows = (
        ecfp(molecules.smiles) if model is None else onto_span(frozen_vectors(molecules, model, parts), train)
    )
    scores = fit_tasks(
        rows, molecules.labels, train, parts == VALID, molecules.kind, "linear", progress=progress
    )
    chosen = parts == (VALID if part == "valid" else TEST)
    values = [roc_auc(task) for task in tasks_of(molecules.labels[chosen], scores[chosen])]
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)), len(defined)


def onto_span(rows: NDArray[np.float32], train: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Rows in coordinates of the space that the training rows span, if these are fewer than the columns.

    A linear model with a penalty on squared weights has none outside this space, so its scores stay the same.
    """
    if int(train.sum()) >= rows.shape[1]:
        return rows
    axes = np.linalg.svd(rows[train], full_matrices=False)[2]
    found: NDArray[np.float32] = rows @ axes.T
    return found


def read_scores(path: Path) -> list[Score]:
    """The scores of a file that `write_scores` wrote; none if there is no file."""
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Score(**json.loads(line)) for line in lines if line.strip()]
    except (ValueError, TypeError) as error:
        raise DamagedFileError(
            "these are no scores of frozen vectors", where=str(path), hint="use another file"
        ) from error


def write_scores(path: Path, scores: Sequence[Score]) -> None:
    """Write scores, sorted, one JSON line each."""
    ordered = sorted(scores, key=lambda score: (score.seen, score.model, score.data, score.part))
    write_atomic(path, "".join(json.dumps(asdict(score)) + "\n" for score in ordered))


def averages(scores: Sequence[Score]) -> dict[tuple[str, int], Mapping[str, float]]:
    """ROC-AUC by set, in percent, of each model and number of molecules seen, fingerprints last."""
    tables: dict[tuple[str, int], dict[str, float]] = {}
    for score in sorted(scores, key=lambda score: (score.model == ECFP, score.seen)):
        tables.setdefault((score.model, score.seen), {})[score.data] = 100 * score.roc_auc
    return {name: dict(values) for name, values in tables.items()}


def score_table(scores: Sequence[Score]) -> Table:
    """One row per model, one column per set, and the average over the sets where a row has all of them."""
    sets = [name for name in SETS if any(score.data == name for score in scores)]
    rows = []
    for (model, seen), values in averages(scores).items():
        cells = [f"{values[name]:.1f}" if name in values else "-" for name in sets]
        mean = f"{np.mean([values[name] for name in sets]):.2f}" if len(values) == len(sets) else "-"
        rows.append((model, f"{seen:,}" if model != ECFP else "-", *cells, mean))
    return Table(
        ("vectors", "molecules seen", *sets, "average"), tuple(rows), align="lr" + "r" * (len(sets) + 1)
    )


def shipped_markdown(results: Path, part: Part) -> str:
    """The model that ships beside fingerprints, on the sets that a folder of results has both for."""
    scores = [s for s in read_scores(results / "molecules" / "shipped.jsonl") if s.part == part]
    by_fingerprints = {score.data for score in scores if score.model == ECFP}
    both = by_fingerprints & {score.data for score in scores if score.model != ECFP}
    return score_table([score for score in scores if score.data in both]).markdown()


def curve_figure(scores: Sequence[Score]) -> Figure:
    """ROC-AUC against molecules seen, a panel per set and one for their average; fingerprints are dashed."""
    from graphsc.report.curves import Line, line_panels

    tables = averages(scores)
    sets = [name for name in SETS if any(score.data == name for score in scores)]
    rows = [(seen, values) for (model, seen), values in tables.items() if model != ECFP]
    prints = next((values for (model, _), values in tables.items() if model == ECFP), {})
    panels, references = {}, {}
    for title in ("average", *sets):
        of_title = sets if title == "average" else [title]
        points = [
            (seen / 1e6, np.mean([values[name] for name in of_title]))
            for seen, values in rows
            if all(name in values for name in of_title)
        ]
        x, y = (np.array(column, dtype=np.float64) for column in zip(*points, strict=True))
        panels[title] = {"frozen vectors": Line(x, y[None])}
        if all(name in prints for name in of_title):
            references[title] = ("ECFP", float(np.mean([prints[name] for name in of_title])))
    return line_panels(
        panels, x_label="molecules seen (millions)", y_label="ROC-AUC (%)", references=references, columns=3
    )
