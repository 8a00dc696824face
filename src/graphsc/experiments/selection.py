"""Rules for selecting the epoch whose embeddings are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphsc.evaluation.cross_validation import Evaluation
from graphsc.evaluation.protocol import Protocol

Rule = Literal["last", "validation", "label-free", "legacy-leaky", "legacy-leaky-common"]
RULES: tuple[Rule, ...] = get_args(Rule)
LEAKY: tuple[Rule, ...] = ("legacy-leaky", "legacy-leaky-common")  # a test label takes part; need every epoch

# Stored results hold these sentences, so a change would set new results apart from old ones.
WORDS: Mapping[Rule, str] = {
    "last": "The last epoch is evaluated.",
    "validation": "For each outer fold the kept epoch is evaluated that does best on its inner folds, which "
    "hold training graphs only.",
    "label-free": "The kept epoch is evaluated whose embeddings have the largest effective rank; no label is "
    "looked at.",
    "legacy-leaky": "LEAKY: of all epochs the one with the best TEST accuracy is evaluated, separately for "
    "each seed, as parts of the literature do; the number is too high and comparable to nothing else here.",
    "legacy-leaky-common": "LEAKY: of all epochs the one with the best mean TEST accuracy over the seeds is "
    "evaluated, the same for every seed, as parts of the literature do; the number is too high and "
    "comparable to nothing else here.",
}

SEARCHED = (
    " TOO HIGH: the settings were chosen by a search in which all graphs of this data set took part, those "
    "of the test folds too."
)

Embeddings = Mapping[int, NDArray[np.float32]]  # by epoch
Evaluate = Callable[[NDArray[np.float32]], Evaluation]


@dataclass(frozen=True)
class Selected:
    """The evaluation that a rule selects.

    Args:
        evaluation: Of the selected epochs.
        epochs: The selected epoch of each outer fold.
        by_epoch: Predictions (graphs) at every epoch that a leaky rule looked at; empty for other rules.
    """

    evaluation: Evaluation
    epochs: list[int]
    by_epoch: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)


def select(rule: Rule, embeddings: Embeddings, evaluate: Evaluate) -> Selected:
    """Evaluate the embeddings that a rule selects.

    The epoch that is common to several seeds can only be selected from the results of all of them. So
    `legacy-leaky-common` selects as `legacy-leaky` does, which is the same for one seed, and tables replace
    the epoch.

    Args:
        rule: How the epoch is selected.
        embeddings: Embeddings by epoch. Leaky rules leave out epoch 0, before training, if there are others.
        evaluate: Evaluates the embeddings of one epoch.
    """
    epochs = sorted(embeddings)
    if rule in LEAKY:
        looked_at = [epoch for epoch in epochs if epoch > 0] or epochs
        evaluations = {epoch: evaluate(embeddings[epoch]) for epoch in looked_at}
        accuracies = {epoch: evaluation.accuracy for epoch, evaluation in evaluations.items()}
        best = best_epoch([accuracies])
        by_epoch = {epoch: evaluation.predictions for epoch, evaluation in evaluations.items()}
        return Selected(evaluations[best], [best] * len(evaluations[best].accuracies), by_epoch)
    if rule == "validation" and len(epochs) > 1:
        return _by_validation([evaluate(embeddings[epoch]) for epoch in epochs], epochs)
    epoch = epochs[-1]
    if rule == "label-free" and len(epochs) > 1:
        epoch = max(epochs, key=lambda epoch: (_effective_rank(embeddings[epoch]), epoch))
    evaluation = evaluate(embeddings[epoch])
    return Selected(evaluation, [epoch] * len(evaluation.accuracies))


def best_epoch(accuracies: Sequence[Mapping[int, float]]) -> int:
    """The epoch with the best mean accuracy over seeds, among those that all have; ties go to the first.

    Args:
        accuracies: Accuracies by epoch, one mapping per seed.
    """
    common = sorted(set.intersection(*(set(of_seed) for of_seed in accuracies)))
    return max(common, key=lambda epoch: (float(np.mean([of_seed[epoch] for of_seed in accuracies])), -epoch))


def _by_validation(evaluations: list[Evaluation], epochs: list[int]) -> Selected:
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
    return Selected(mixed, [epochs[k] for k in best])


def _effective_rank(rows: NDArray[np.float32]) -> float:
    import torch

    from graphsc.losses import effective_rank

    return float(effective_rank(torch.from_numpy(rows)))


def protocol_words(rule: Rule, protocol: Protocol, *, inductive: bool, searched: bool = False) -> str:
    """The whole protocol in words, printed beside every number.

    Args:
        rule: Which epoch is evaluated.
        protocol: How embeddings are evaluated.
        inductive: Whether an encoder is trained per outer fold, without its graphs.
        searched: Whether the settings were chosen by a search on these graphs.
    """
    seen = (
        "Inductive: one encoder per outer fold, trained without that fold's graphs."
        if inductive
        else "Transductive and label-free: the encoder is trained on all graphs, without labels."
    )
    return f"{seen} {WORDS[rule]} {protocol.words()}{SEARCHED if searched else ''}"
