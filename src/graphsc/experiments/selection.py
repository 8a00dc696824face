"""Rules for selecting the epoch whose embeddings are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphsc.evaluation.cross_validation import Evaluation
from graphsc.evaluation.protocol import Protocol

Rule = Literal["last", "validation", "label-free", "legacy-leaky"]
RULES: tuple[Rule, ...] = get_args(Rule)

# Stored results hold these sentences, so a change would set new results apart from old ones.
WORDS: Mapping[Rule, str] = {
    "last": "The last epoch is evaluated.",
    "validation": "For each outer fold the kept epoch is evaluated that does best on its inner folds, which "
    "hold training graphs only.",
    "label-free": "The kept epoch is evaluated whose embeddings have the largest effective rank; no label is "
    "looked at.",
    "legacy-leaky": "LEAKY: the kept epoch with the best TEST accuracy is evaluated, as parts of the "
    "literature do; the number is too high and comparable to nothing else here.",
}

Embeddings = Mapping[int, NDArray[np.float32]]  # by epoch
Evaluate = Callable[[NDArray[np.float32]], Evaluation]


def select(rule: Rule, embeddings: Embeddings, evaluate: Evaluate) -> tuple[Evaluation, list[int]]:
    """Evaluate the embeddings that a rule selects.

    Args:
        rule: How the epoch is selected.
        embeddings: Embeddings by epoch.
        evaluate: Evaluates the embeddings of one epoch.

    Returns:
        The evaluation, and the epoch of each outer fold.
    """
    epochs = sorted(embeddings)
    if rule == "last" or len(epochs) == 1:
        epoch = epochs[-1]
    elif rule == "label-free":
        epoch = max(epochs, key=lambda epoch: (_effective_rank(embeddings[epoch]), epoch))
    else:
        evaluations = [evaluate(embeddings[epoch]) for epoch in epochs]
        if rule == "validation":
            return _by_validation(evaluations, epochs)
        best = int(np.argmax([evaluation.accuracy for evaluation in evaluations]))
        return evaluations[best], [epochs[best]] * len(evaluations[best].accuracies)
    evaluation = evaluate(embeddings[epoch])
    return evaluation, [epoch] * len(evaluation.accuracies)


def _by_validation(evaluations: list[Evaluation], epochs: list[int]) -> tuple[Evaluation, list[int]]:
    """Each outer fold is predicted at the epoch that is best on its inner folds; ties go to the later one."""
    inner = np.stack([evaluation.inner.max(axis=1) for evaluation in evaluations])  # epochs x folds
    best = len(epochs) - 1 - np.argmax(inner[::-1], axis=0)
    predictions = np.stack([evaluation.predictions for evaluation in evaluations])  # epochs x graphs
    first = evaluations[0]
    mixed = Evaluation(
        predictions=predictions[best[first.fold], np.arange(len(first.fold))],
        fold=first.fold,
        labels=first.labels,
        chosen=tuple(evaluations[k].chosen[fold] for fold, k in enumerate(best)),
        inner=np.stack([evaluations[k].inner[fold] for fold, k in enumerate(best)]),
    )
    return mixed, [epochs[k] for k in best]


def _effective_rank(rows: NDArray[np.float32]) -> float:
    import torch

    from graphsc.losses import effective_rank

    return float(effective_rank(torch.from_numpy(rows)))


def protocol_words(rule: Rule, protocol: Protocol, *, inductive: bool) -> str:
    """The whole protocol in words, printed beside every number."""
    seen = (
        "Inductive: one encoder per outer fold, trained without that fold's graphs."
        if inductive
        else "Transductive and label-free: the encoder is trained on all graphs, without labels."
    )
    return f"{seen} {WORDS[rule]} {protocol.words()}"
