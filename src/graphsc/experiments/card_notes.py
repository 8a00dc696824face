"""Sentences for the card of a model: what it is worth on labelled molecules, frozen and fine-tuned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from graphsc.experiments.frozen import ECFP, SETS, Score
from graphsc.experiments.published import published_transfer
from graphsc.experiments.result import ResultStore
from graphsc.finetuning.result import TransferResult
from graphsc.training.model_io import weights_hash

DELIVERED = {"fit": "the ensemble", "encoder": "its fine-tuned encoder alone"}  # rules of an ensemble
FOREST = "ecfp-forest"
PUBLISHED = {"graphsc": "GraphSC", "graphcl": "GraphCL"}


def frozen_notes(scores: Sequence[Score], model: Path) -> list[str]:
    """A sentence per part of the split, with fingerprints beside it; none without scores of the model."""
    digest, notes = weights_hash(model), []
    for part, words in (("valid", "validation"), ("test", "test")):
        here = [score for score in scores if score.part == part]
        own = {score.data: 100 * score.roc_auc for score in here if score.digest == digest}
        prints = {score.data: 100 * score.roc_auc for score in here if score.model == ECFP}
        if not own:
            continue
        sentence = f"ROC-AUC of linear models on frozen vectors, scaffold split, {words} part: {_listed(own)}"
        if set(own) <= set(prints):
            mean = _mean(prints, own)
            verdict = "better" if mean > _mean(own, own) else "not better"
            sentence += f", of ECFP fingerprints {mean:.2f}, which are {verdict}"
        notes.append(sentence)
    return notes


def delivered_notes(store: ResultStore, model: Path) -> list[str]:
    """What fine-tuning delivers from the model, on test molecules; none without stored ensembles of it.

    A random forest on fingerprints and the published averages are beside it, over the same data sets.
    """
    digest = weights_hash(model)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in store.all():
        if not isinstance(result, TransferResult):
            continue
        trial = result.trial
        pretraining = cast(Mapping[str, object], trial.get("pretraining") or {})
        rules = DELIVERED if trial["way"] == "ensemble" and pretraining.get("weights") == digest else {}
        for rule in rules:
            found[rule][str(trial["data"])].append(100 * result.score(rule))
        if trial["way"] == FOREST:
            found[FOREST][str(trial["data"])].append(100 * result.score("fit"))
    means = {
        name: {data: float(np.mean(own)) for data, own in cells.items()} for name, cells in found.items()
    }
    own = means.get("fit")
    if not own:
        return []
    notes = [
        f"test ROC-AUC after graphsc finetune, scaffold split, {words}: {_listed(means[rule])}"
        for rule, words in DELIVERED.items()
    ]
    beside = []
    if set(own) <= set(means.get(FOREST, {})):
        beside.append(f"a random forest on ECFP fingerprints {_mean(means[FOREST], own):.2f}")
    for method, title in PUBLISHED.items():
        printed = {data: cell[0] for data, cell in published_transfer()[method].items()}
        if set(own) <= set(printed):
            beside.append(f"{title} as published {_mean(printed, own):.2f}")
    if beside:
        notes.append(f"averages over the same {len(own)} sets, test ROC-AUC: {', '.join(beside)}")
    return notes


def _listed(values: Mapping[str, float]) -> str:
    sets = [name for name in SETS if name in values]
    text = ", ".join(f"{name} {values[name]:.1f}" for name in sets)
    return f"{text}; average {_mean(values, sets):.2f}"


def _mean(values: Mapping[str, float], sets: Sequence[str] | Mapping[str, float]) -> float:
    return float(np.mean([values[name] for name in sets]))
