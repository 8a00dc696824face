"""Which epoch's embeddings are judged: the rule, in code and in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphsc.evaluation.cross_validation import Evaluation
from graphsc.evaluation.protocol import Protocol

Rule = Literal["last", "validation", "label-free", "legacy-leaky"]
RULES: tuple[Rule, ...] = get_args(Rule)

WORDS: Mapping[Rule, str] = {
    "last": "The last epoch is judged.",
    "validation": "For each outer fold the kept epoch is judged that does best on its inner folds, which "
    "hold training graphs only.",
    "label-free": "The kept epoch is judged whose embeddings have the largest effective rank; no label is "
    "looked at.",
    "legacy-leaky": "LEAKY: the kept epoch with the best TEST accuracy is judged, as parts of the literature "
    "do; the number is too high and comparable to nothing else here.",
}

Embeddings = Mapping[int, NDArray[np.float32]]  # by epoch
Judge = Callable[[NDArray[np.float32]], Evaluation]


def select(rule: Rule, embeddings: Embeddings, judge: Judge) -> tuple[Evaluation, list[int]]:
    """Judge the embeddings that the rule picks; also gives the epoch of each outer fold."""
    epochs = sorted(embeddings)
    if rule == "last" or len(epochs) == 1:
        found = judge(embeddings[epochs[-1]])
        return found, [epochs[-1]] * len(found.accuracies)
    if rule == "label-free":
        best = max(epochs, key=lambda epoch: (_rank(embeddings[epoch]), epoch))
        found = judge(embeddings[best])
        return found, [best] * len(found.accuracies)
    judged = [judge(embeddings[epoch]) for epoch in epochs]
    if rule == "legacy-leaky":
        position = int(np.argmax([one.accuracy for one in judged]))
        return judged[position], [epochs[position]] * len(judged[position].accuracies)
    return _by_validation(judged, epochs)


def _by_validation(judged: list[Evaluation], epochs: list[int]) -> tuple[Evaluation, list[int]]:
    """Each outer fold's predictions from the epoch that its inner folds like best; ties to the later one."""
    inner = np.stack([one.inner.max(axis=1) for one in judged])  # epochs x folds
    picked = len(epochs) - 1 - np.argmax(inner[::-1], axis=0)
    first = judged[0]
    everything = np.stack([one.predictions for one in judged])  # epochs x graphs
    predictions = everything[picked[first.fold], np.arange(len(first.fold))]
    folds = range(len(picked))
    mixed = Evaluation(
        predictions=predictions,
        fold=first.fold,
        labels=first.labels,
        chosen=tuple(judged[picked[fold]].chosen[fold] for fold in folds),
        inner=np.stack([judged[picked[fold]].inner[fold] for fold in folds]),
    )
    return mixed, [epochs[position] for position in picked]


def _rank(rows: NDArray[np.float32]) -> float:
    import torch

    from graphsc.losses import effective_rank

    return float(effective_rank(torch.from_numpy(rows)))


def in_words(rule: Rule, protocol: Protocol, *, inductive: bool) -> str:
    """The whole protocol of a number, to be printed beside it."""
    seen = (
        "Inductive: one encoder per outer fold, trained without that fold's graphs."
        if inductive
        else "Transductive and label-free: the encoder is trained on all graphs, without labels."
    )
    return f"{seen} {WORDS[rule]} {protocol.words()}"
