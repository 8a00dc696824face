"""The complete NCI1 experiment, one seed: load, train 20 epochs, embed, probe; ours and as one writes it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.cases import BATCH_SIZE
from benchmarks.measure import Result, compare, take_turns
from benchmarks.peer import PygGraphSC, loader_of
from graphsc.data.readers import open_collection
from graphsc.evaluation.cross_validation import stratified_folds
from graphsc.experiments.probe import labels_of
from graphsc.experiments.runner import run_trial
from graphsc.experiments.trial import ProbeTrial
from graphsc.methods import make_recipe

DATA, EPOCHS = "nci1", 20


def run() -> list[Result]:
    accuracies: dict[str, float] = {}

    def ours() -> None:
        accuracies["ours"] = _ours()

    def peer() -> None:
        accuracies["peer"] = _peer()

    times = take_turns((ours, peer), repeats=1)
    note = f"accuracy {100 * accuracies['ours']:.2f} against {100 * accuracies['peer']:.2f} %"
    return [
        compare(
            "whole", f"{DATA}, {EPOCHS} epochs, 10 folds", *times, bar=5.0, goal=10.0, better="higher",
            against="PyG and GridSearchCV", note=note,
        )
    ]  # fmt: skip


def _ours() -> float:
    with tempfile.TemporaryDirectory() as folder:
        return run_trial(ProbeTrial(DATA, "graphsc", training={"epochs": EPOCHS}), runs=Path(folder)).accuracy


def _peer() -> float:
    """The same with PyG's layers and loader, and scikit-learn's grid search on the same folds."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC
    from torch_geometric.loader import DataLoader

    collection = open_collection(DATA)  # PyG's own reader is the row `read`
    recipe = make_recipe("graphsc", collection)
    model = PygGraphSC(recipe.build(collection.features, 0))
    optimiser = torch.optim.Adam(model.parameters(), 0.01, fused=True)
    loader = loader_of(collection, list(recipe.settings["operations"]), (0.1, 0.25), 0, BATCH_SIZE)
    for _ in range(EPOCHS):
        for anchor, weak, strong in loader:
            loss = model.loss(anchor, weak, strong)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
    model.eval()
    with torch.no_grad():
        batches = DataLoader(loader.dataset.graphs, batch_size=256)
        rows = torch.cat([model.encode(batch) for batch in batches]).numpy()
    codes, _ = labels_of(collection)
    fold = stratified_folds(codes, 10, 0)
    inner = StratifiedKFold(5, shuffle=True, random_state=0)
    accuracies = []
    for number in range(10):
        train, test = fold != number, fold == number
        search = GridSearchCV(SVC(), {"C": [10.0**power for power in range(-3, 4)]}, cv=inner)
        search.fit(rows[train], codes[train])
        accuracies.append(search.score(rows[test], codes[test]))
    return float(np.mean(accuracies))
