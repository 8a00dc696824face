"""Evaluates finished runs, on the folds of their own seed or on other folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError, NotFoundError
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.readers import find_saved, locate_reading, open_collection
from graphsc.data.sampling import open_sample
from graphsc.evaluation.cross_validation import Evaluation, evaluate, few_labels, stratified_folds
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.probe import kept_epochs, labels_of
from graphsc.experiments.result import Result, load_result
from graphsc.experiments.selection import Embeddings, Rule, protocol_words, select
from graphsc.methods.registry import searched_settings
from graphsc.training.callbacks import Metrics
from graphsc.training.model_io import load_model
from graphsc.training.train import stored_embeddings


@dataclass(frozen=True)
class RunEvaluation:
    """How good the embeddings of a run are, by one protocol."""

    result: Result
    evaluation: Evaluation
    # One accuracy per folding of the same embeddings. It is no deviation over runs.
    resplit: tuple[float, ...] = ()
    few: dict[float, Evaluation] | None = None
    clusters: dict[str, float] | None = None


def evaluate_run(
    run: str | Path,
    source: str | GraphCollection | None = None,
    *,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    protocol: Protocol | None = None,
    selection: Rule = "last",
    fold_seeds: int = 1,
    few: bool = False,
    clusters: bool = False,
    jobs: int = 1,
) -> RunEvaluation:
    """Evaluate a run on the folds of its own seed.

    Args:
        run: The folder of a finished run.
        source: The run's graphs, where it cannot find them itself.
        reader: Their reader; by default as in training.
        options: Options of the reader; by default as in training.
        protocol: How embeddings are evaluated.
        selection: Which epoch is evaluated.
        fold_seeds: How many foldings the same embeddings are evaluated on.
        few: Also evaluate with few labels.
        clusters: Also measure how well clusters agree with classes.
        jobs: Folds at a time.
    """
    protocol = protocol or Protocol()
    folder = RunFolder(run)
    config = folder.load_config()
    collection = graphs_of(config, source, reader=reader, options=options)
    codes, classes = labels_of(collection)
    seed = int(cast(dict[str, int], config["training"])["seed"])
    if not folder.model.exists():
        raise _not_finished(folder)
    embeddings, gram = rows_by_epoch(folder, collection)

    def evaluate_on(fold: NDArray[np.int64]) -> Callable[[NDArray[np.float32]], Evaluation]:
        return lambda rows: evaluate(rows, codes, protocol, fold=fold, gram=gram, jobs=jobs)

    fold = stratified_folds(codes, protocol.folds, seed, names=classes)
    selected = select(selection, embeddings, evaluate_on(fold))
    found = selected.evaluation
    resplit = [found.accuracy]
    for other in range(seed + 1, seed + fold_seeds):
        again = stratified_folds(codes, protocol.folds, other, names=classes)
        resplit.append(select(selection, embeddings, evaluate_on(again)).evaluation.accuracy)
    last = embeddings[max(embeddings)]
    training = cast(dict[str, object], config["training"])
    rows = Metrics(folder.metrics, keep=10**9).rows
    searched = _has_searched_settings(config, collection.name)
    words = protocol_words(selection, protocol, inductive=False, searched=searched)
    if selected.by_epoch and len(selected.by_epoch) < max(embeddings):
        words += f" The run kept the epochs {', '.join(map(str, selected.by_epoch))} only."
    result = Result.of(
        selected,
        trial={
            "data": collection.name, "graphs": collection.content_hash,
            "features": collection.features.name, "method": config["method"], "preset": "default",
            "training": training, "fold_seed": seed, "protocol": protocol.to_json(),
            "selection": selection, "inductive": False,
        },
        config=config,
        classes=classes,
        words=words,
        seconds={"training": round(sum(row.get("seconds", 0.0) for row in rows), 2)},
    )  # fmt: skip
    quality = None
    if clusters and not gram:
        from graphsc.evaluation.clustering import clustering_quality  # not at the top: slow to import

        quality = clustering_quality(last, codes, seed=seed)
    return RunEvaluation(
        result=result,
        evaluation=found,
        resplit=tuple(resplit) if fold_seeds > 1 else (),
        few=few_labels(last, codes, protocol, seed=seed, gram=gram, fold=fold, jobs=jobs) if few else None,
        clusters=quality,
    )


def graphs_of(
    config: Mapping[str, object],
    source: str | GraphCollection | None,
    *,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
) -> GraphCollection:
    """The graphs a run was trained on, read as they were read then; others are refused.

    Args:
        config: The run's config.
        source: Where the graphs are now, by default where they were.
        reader: Their reader; by default the one the run was trained with.
        options: Options of the reader, likewise.
    """
    if "transfer" in config:
        raise ConfigError(
            "this is a fine-tuned model, which has been evaluated already",
            hint="see graphsc report, graphsc predict",
        )
    data = cast(dict[str, object], config["data"])
    reading = cast("Mapping[str, object] | None", config.get("reading"))
    if source is None and config.get("source") is None and reading is None:
        raise ConfigError("the run does not say where its graphs came from", hint="name them")
    where = source or (reading or {}).get("path") or (reading or {}).get("source") or config["source"]
    try:
        collection = _read_again(config, source, reader, options or {})
    except NotFoundError as error:
        if source is None:
            raise NotFoundError(
                f"the run's graphs are not found: {error.what}", where=error.where or str(where),
                hint="name the file that holds them now",
            ) from error  # fmt: skip
        raise
    if collection.content_hash != data["content_hash"]:
        changed = (
            "the file holds other graphs than those the run was trained on"
            if source is None
            else "these are not the graphs the run was trained on"
        )
        raise ConfigError(
            f"{changed}: {data['name']}, {data['graphs']} graphs", where=str(where),
            hint="give the run's own graphs, with the options they were read with; for others, embed them "
            "and call graphsc.evaluation",
        )  # fmt: skip
    return collection


def _read_again(
    config: Mapping[str, object],
    source: str | GraphCollection | None,
    reader: str | None,
    options: Mapping[str, object],
) -> GraphCollection:
    features = str(cast(dict[str, object], config["data"])["features"])
    if isinstance(source, GraphCollection):
        return source.with_features(features)
    reading = dict(cast("Mapping[str, object]", config.get("reading") or {}))
    given = dict(options)
    if not reading or reader is not None or options:
        where = cast(str, source or reading.get("path") or reading.get("source") or config["source"])
    elif source is not None and (find_saved(source, None, {}) is not None or source.lower() in NAMED):
        where = source
    else:
        if source is not None:
            reading |= {"source": source, "path": source if Path(source).exists() else None}
        where, reader, given = locate_reading(reading)
    given["features"] = features
    sample = cast("Mapping[str, int | None] | None", reading.get("sample"))
    if sample is None:
        return open_collection(where, reader=reader, **given)
    return open_sample(
        where, sample["graphs"], held_out=cast(int, sample["held_out"]), seed=cast(int, sample["seed"]),
        reader=reader, **given,
    ).training  # fmt: skip


def _has_searched_settings(config: Mapping[str, object], data: str) -> bool:
    """Whether a run has all settings that a search chose on this data set."""
    chosen = searched_settings(str(config["method"]), data)
    parts = {"encoder": "encoder_settings", "training": "training"}
    for name, value in chosen.items():
        part, _, key = name.rpartition(".")
        own = cast(Mapping[str, object], config[parts.get(part, "settings")])
        if own.get(key) != value:
            return False
    return bool(chosen)


def rows_by_epoch(folder: RunFolder, collection: GraphCollection) -> tuple[Embeddings, bool]:
    """Embeddings of every kept epoch, and whether they are kernel values. The run may have stopped early."""
    epochs = kept_epochs(folder)
    if not folder.model.exists() and not epochs:
        raise _not_finished(folder)
    if epochs:
        last = max((int(row["epoch"]) for row in Metrics(folder.metrics, keep=10**9).rows), default=0)
        if epochs[-1] != last and folder.model.exists():
            raise NotFoundError(
                f"the run ended after epoch {last}, but its newest embeddings are of epoch {epochs[-1]}",
                where=str(folder.embeddings), hint="restore it, or train again in another folder",
            )  # fmt: skip
        identity = collection.content_hash
        return {epoch: stored_embeddings(folder, epoch, identity) for epoch in epochs}, False
    model = load_model(folder.model)
    return {0: model.embed(collection)}, model.gram


def _not_finished(folder: RunFolder) -> NotFoundError:
    return NotFoundError(
        "this run has not finished", where=str(folder.path), hint="train it to its end first"
    )


def store_result(result: Result, run: str | Path) -> Path:
    """Store a result in its run's folder, replacing the one before."""
    path = Path(run) / "result.json"
    result.save(path)
    return path


@dataclass(frozen=True)
class EvaluatedRun:
    """A run for a report. `result` is missing where it was not evaluated; `note` says why."""

    folder: RunFolder
    config: Mapping[str, object]
    collection: GraphCollection
    result: Result | None
    note: str = ""

    @property
    def method(self) -> str:
        return str(self.config["method"])

    @property
    def seed(self) -> int:
        return int(cast(Mapping[str, int], self.config["training"])["seed"])

    @property
    def recipe(self) -> dict[str, str]:
        """All settings but the seed: runs that share them are repetitions of one method."""
        kept = {}
        for group in ("settings", "encoder_settings", "training"):
            for key, value in cast(Mapping[str, object], self.config.get(group) or {}).items():
                kept[key if group == "settings" else f"{group.split('_')[0]}.{key}"] = str(value)
        kept |= {key: str(self.config.get(key)) for key in ("encoder", "epochs")}
        return {key: value for key, value in kept.items() if key != "training.seed"}


def evaluated_run(
    path: Path,
    source: str | GraphCollection | None = None,
    *,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    evaluate: bool = True,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> EvaluatedRun:
    """A run with its stored result, or with a new one where it has none of its own folds.

    Args:
        path: The folder of a run; one that has not finished is not evaluated.
        source: The run's graphs, where it cannot find them itself.
        reader: Their reader; by default as in training.
        options: Options of the reader; by default as in training.
        evaluate: Whether a run without a result is evaluated.
        jobs: Folds at a time.
        say: Receives a sentence before an evaluation.
    """
    folder = RunFolder(path)
    config = folder.load_config()
    collection = graphs_of(config, source, reader=reader, options=options)
    try:
        labels_of(collection)
    except DataError as error:
        return EvaluatedRun(folder, config, collection, None, f"Not evaluated: {error}.")
    if not folder.model.exists():
        done = len(Metrics(folder.metrics, keep=10**9).rows)
        note = f"Not evaluated: this run has not finished. It stopped at epoch {done} of {config['epochs']}."
        return EvaluatedRun(folder, config, collection, None, note)
    stored = path / "result.json"
    if stored.exists() and not (result := load_result(stored)).resplit:
        return EvaluatedRun(folder, config, collection, _renamed(result, config))
    if not evaluate:
        return EvaluatedRun(folder, config, collection, None, "Not evaluated: this run has no result yet.")
    say(f"{path} has no result; evaluating it")
    try:
        evaluation = evaluate_run(path, collection, jobs=jobs)
    except (ConfigError, DataError) as error:  # too few graphs of a class for the folds, for example
        return EvaluatedRun(folder, config, collection, None, f"Not evaluated: {error}.")
    result = _renamed(evaluation.result, config)
    return EvaluatedRun(folder, config, collection, result, "Evaluated for this report.")


def _renamed(result: Result, config: Mapping[str, object]) -> Result:
    """The result under the name of the data in the run's config, so that its runs share one column."""
    name = cast(Mapping[str, object], config["data"])["name"]
    return replace(result, trial={**result.trial, "data": name, "features": "auto"})
