"""The inner loop of paragraph vectors, compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphsc.core.compiled import compiled
from graphsc.kernels.doc2vec import KEEP_DRAW, NOISE_DRAWS, WINDOW_DRAW
from graphsc.kernels.weisfeiler_lehman import GOLDEN

_STEP = np.uint64(GOLDEN)
_ONE = np.float32(1)
_ZERO = np.float32(0)


@compiled
def _draw(key: np.uint64, number: int) -> np.uint64:
    """The upper 32 bits of a number of SplitMix64's stream, as in `splitmix64(key + number * GOLDEN, 0)`."""
    mixed = key + np.uint64(number + 1) * _STEP
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed >> np.uint64(32)


# Tables are passed with the number of a row: a view of the row would be counted by the runtime, which takes
# longer than reading it.
@compiled(reorder=True)
def _dot(a: NDArray[np.float32], i: int, b: NDArray[np.float32], k: int) -> np.float32:
    """The inner product of row i of a and row k of b."""
    total = _ZERO
    row, other = np.uint64(i), np.uint64(k)  # unsigned: a negative number would count from the end
    for j in range(np.uint64(a.shape[1])):
        total += a[row, j] * b[other, j]
    return total


@compiled(reorder=True)
def _add(a: NDArray[np.float32], i: int, scale: np.float32, b: NDArray[np.float32], k: int) -> None:
    """Add row k of b, times a number, to row i of a."""
    row, other = np.uint64(i), np.uint64(k)
    for j in range(np.uint64(a.shape[1])):
        a[row, j] += scale * b[other, j]


@compiled
def _set(a: NDArray[np.float32], scale: np.float32, b: NDArray[np.float32], k: int) -> None:
    """Set the only row of a to row k of b, times a number."""
    first, other = np.uint64(0), np.uint64(k)
    for j in range(np.uint64(a.shape[1])):
        a[first, j] = scale * b[other, j]


@compiled
def read_documents(
    words: NDArray[np.uint32],
    ptr: NDArray[np.int64],
    first_draws: NDArray[np.int64],
    order: NDArray[np.int64],
    rates: NDArray[np.float32],
    rows: NDArray[np.float32],
    inputs: NDArray[np.float32],
    outputs: NDArray[np.float32],
    keep: NDArray[np.uint64],
    noise: NDArray[np.uint64],
    shortcut: NDArray[np.int64],
    window: int,
    negative: int,
    key: np.uint64,
    learn_words: bool,
) -> None:
    """Read documents once, word by word, and update the vectors after each word.

    Args:
        words: The codes of all words.
        ptr: Document i is `words[ptr[i]:ptr[i + 1]]`.
        first_draws: Per document, the number of its first word among the draws.
        order: The documents to read.
        rates: The learning rate of each of them.
        rows: Documents x dimensions, the vectors of the documents.
        inputs: Words x dimensions, the vectors of words around a word; not used if the window is 0.
        outputs: Words x dimensions, the vectors of predicted words.
        keep: Per word, the bound of the draws that keep it.
        noise: Per word, the cumulative bound of the draws that choose it as noise.
        shortcut: Per upper 16 bits of a draw, the first noise word to look at.
        window: Words on each side of a word in PV-DM; 0 for PV-DBOW.
        negative: Noise words per word.
        key: Of the draws.
        learn_words: Whether `inputs` and `outputs` are updated, too.
    """
    dimensions = rows.shape[1]
    per_word = NOISE_DRAWS + negative
    shift = np.uint64(16)
    mean = np.empty((1, dimensions), np.float32)
    change = np.empty((1, dimensions), np.float32)
    targets = np.empty(negative + 1, np.int64)
    steps = np.empty(negative + 1, np.float32)
    longest = 0
    for i in range(len(ptr) - 1):
        longest = max(longest, ptr[i + 1] - ptr[i])
    text = np.empty(longest, np.int64)  # the words of a document that are kept
    number = np.empty(longest, np.int64)  # of their first draws
    for place in range(len(order)):
        document = order[place]
        rate = rates[place]
        begin = ptr[document]
        length = 0
        for offset in range(ptr[document + 1] - begin):
            word = np.int64(words[begin + offset])
            draw = (first_draws[document] + offset) * per_word
            if _draw(key, draw + KEEP_DRAW) < keep[word]:
                text[length] = word
                number[length] = draw
                length += 1
        for i in range(length):
            _set(mean, _ONE, rows, document)
            left = right = i
            if window:
                reach = window - int(np.int64(_draw(key, number[i] + WINDOW_DRAW))) % window
                left = max(i - reach, 0)
                right = min(i + reach, length - 1)
                for other in range(left, right + 1):
                    if other != i:
                        _add(mean, 0, _ONE, inputs, text[other])
                _set(mean, _ONE / np.float32(right - left + 1), mean, 0)
            targets[0] = text[i]
            for k in range(negative):
                draw32 = _draw(key, number[i] + NOISE_DRAWS + k)
                word = shortcut[np.int64(draw32 >> shift)]
                while noise[word] <= draw32:
                    word += 1
                targets[k + 1] = word
            # All steps are computed before any weight changes: a word may be drawn twice.
            for k in range(negative + 1):
                activation = _ONE / (_ONE + np.float32(math.exp(-_dot(mean, 0, outputs, targets[k]))))
                if k == 0:
                    steps[k] = (_ONE - activation) * rate
                elif targets[k] == targets[0]:
                    steps[k] = _ZERO
                else:
                    steps[k] = -activation * rate
            _set(change, steps[0], outputs, targets[0])
            for k in range(1, negative + 1):
                _add(change, 0, steps[k], outputs, targets[k])
            if learn_words:
                for k in range(negative + 1):
                    _add(outputs, targets[k], steps[k], mean, 0)
                for other in range(left, right + 1):
                    if other != i:
                        _add(inputs, text[other], _ONE, change, 0)
            _add(rows, document, _ONE, change, 0)
