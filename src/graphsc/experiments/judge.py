"""A finished run judged: on its own seed's folds, or re-split, which is another question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.evaluation.clustering import clustering_quality
from graphsc.evaluation.cross_validation import Evaluation, evaluate, few_labels, stratified_folds
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.result import Result
from graphsc.experiments.run import kept_epochs, labels_of
from graphsc.experiments.selection import Embeddings, Rule, in_words, select
from graphsc.training.callbacks import Metrics
from graphsc.training.model_io import load_model
from graphsc.training.train import stored_embeddings


@dataclass(frozen=True)
class Judgement:
    """How good a run's embeddings are, and by which rule."""

    result: Result
    evaluation: Evaluation
    # One accuracy a re-splitting of the same embeddings; says nothing of other runs.
    resplit: tuple[float, ...] = ()
    few: dict[float, Evaluation] | None = None
    clusters: dict[str, float] | None = None


def evaluate_run(
    run: str | Path,
    source: str | GraphCollection | None = None,
    *,
    protocol: Protocol | None = None,
    selection: Rule = "last",
    fold_seeds: int = 1,
    few: bool = False,
    clusters: bool = False,
    jobs: int = 1,
) -> Judgement:
    """Judge a run on the folds of its own seed; `fold_seeds` > 1 also re-splits the same embeddings."""
    protocol = protocol or Protocol()
    folder = RunFolder(run)
    config = folder.load_config()
    collection = graphs_of(config, source)
    codes, classes = labels_of(collection)
    seed = int(cast(dict[str, int], config["training"])["seed"])
    embeddings, gram = rows_by_epoch(folder, collection)

    def judge_on(fold: NDArray[np.int64]) -> Callable[[NDArray[np.float32]], Evaluation]:
        return lambda rows: evaluate(rows, codes, protocol, fold=fold, gram=gram, jobs=jobs)

    fold = stratified_folds(codes, protocol.folds, seed, names=classes)
    found, epochs = select(selection, embeddings, judge_on(fold))
    resplit = [found.accuracy]
    for other in range(seed + 1, seed + fold_seeds):
        again = stratified_folds(codes, protocol.folds, other, names=classes)
        resplit.append(select(selection, embeddings, judge_on(again))[0].accuracy)
    last = embeddings[max(embeddings)]
    training = cast(dict[str, object], config["training"])
    rows = Metrics(folder.metrics, keep=10**9).rows
    result = Result.of(
        found, epochs,
        trial={
            "data": collection.name, "features": collection.features.name, "method": config["method"],
            "preset": "default", "training": training, "fold_seed": seed, "protocol": protocol.to_json(),
            "selection": selection, "inductive": False,
        },
        config=config,
        classes=classes,
        words=in_words(selection, protocol, inductive=False),
        seconds={"training": round(sum(row.get("seconds", 0.0) for row in rows), 2)},
    )  # fmt: skip
    return Judgement(
        result=result,
        evaluation=found,
        resplit=tuple(resplit) if fold_seeds > 1 else (),
        few=few_labels(last, codes, protocol, seed=seed, gram=gram, fold=fold, jobs=jobs) if few else None,
        clusters=clustering_quality(last, codes, seed=seed) if clusters and not gram else None,
    )


def graphs_of(config: dict[str, object], source: str | GraphCollection | None) -> GraphCollection:
    """The graphs a run was trained on, found again by the run's own notes, or given; never others."""
    data = cast(dict[str, object], config["data"])
    if "transfer" in config:
        raise ConfigError(
            "this is a fine-tuned model, which is judged already", hint="see graphsc report, graphsc predict"
        )
    if source is None:
        source = cast(str | None, config.get("source"))
        if source is None:
            raise ConfigError("the run does not say where its graphs came from", hint="name them")
    collection = open_collection(source, features=str(data["features"]))
    if collection.content_hash != data["content_hash"]:
        raise ConfigError(
            f"these are not the graphs the run was trained on: {data['name']}, {data['graphs']} graphs",
            where=str(source),
            hint="give the run's own graphs; for others, embed them and call graphsc.evaluation",
        )
    return collection


def rows_by_epoch(folder: RunFolder, collection: GraphCollection) -> tuple[Embeddings, bool]:
    """Rows of every kept epoch, and whether they are kernel values."""
    if not folder.model.exists():
        raise NotFoundError(
            "this run has not finished", where=str(folder.path), hint="train it to its end first"
        )
    epochs = kept_epochs(folder)
    if epochs:
        return {epoch: stored_embeddings(folder, epoch) for epoch in epochs}, False
    model = load_model(folder.model)
    return {0: model.embed(collection)}, model.gram


def store_result(result: Result, run: str | Path) -> Path:
    """Keep a result in its run's folder, in place of the one before."""
    path = Path(run) / "result.json"
    result.save(path)
    return path
