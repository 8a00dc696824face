"""Paragraph vectors (Le and Mikolov, 2014): graphs as documents, one vector per document.

The seed determines every vector, and the vector of an unseen document does not depend on other documents:
each draw is a hash of the seed, the epoch and the position of the word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.compiled import use_compiled
from graphsc.core.errors import DataError
from graphsc.core.random import derive_seed, numpy_generator
from graphsc.data.arrays import pointer
from graphsc.data.collection import GraphCollection
from graphsc.kernels.weisfeiler_lehman import GOLDEN, Start, splitmix64, wl_labels

Reading = Literal["dbow", "dm"]
Rows = NDArray[np.float32]

_LAST_RATE = 0.0001
_NOISE_POWER = 0.75  # noise words are drawn in proportion to count^0.75 (Mikolov et al., 2013)
_CHUNK = 4_000_000  # words looked up at once, to bound memory
_CERTAIN = 2**32  # draws are 32 bits; a draw is always below this
_SHORTCUT_BITS = 16
# The draws of a word: one for its down-sampling, one for its window, then one for each noise word.
KEEP_DRAW, WINDOW_DRAW, NOISE_DRAWS = range(3)


@dataclass(frozen=True, eq=False)
class Documents:
    """Concatenated documents: document i is `words[ptr[i]:ptr[i + 1]]`; a word is an integer."""

    words: NDArray[np.unsignedinteger]
    ptr: NDArray[np.int64]  # documents + 1

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.ptr)


def subgraph_documents(collection: GraphCollection, iterations: int, start: Start = "auto") -> Documents:
    """A document for each graph: the rooted sub-graphs of its nodes as words.

    The words are the Weisfeiler-Lehman colours of the nodes after 0, 1, ..., `iterations` rounds, so a graph
    of n nodes has n (iterations + 1) words. Their order is pseudo-random but depends on the words only:
    graphs that differ in the order of their nodes give the same document.
    """
    rounds = wl_labels(collection, iterations, start)
    lengths = np.diff(collection.node_ptr)
    graph = np.tile(np.repeat(np.arange(len(collection)), lengths), len(rounds))
    words = np.concatenate(rounds)
    order = np.lexsort((words, graph))
    words, graph = words[order], graph[order]
    shuffled = np.lexsort((_shuffle_keys(words, graph), graph))
    return Documents(words[shuffled], pointer(lengths * len(rounds)))


def _shuffle_keys(words: NDArray[np.uint64], graph: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash of each of the sorted words, with another value for each copy of a word in a graph."""
    is_first = np.ones(len(words), dtype=bool)
    is_first[1:] = (words[1:] != words[:-1]) | (graph[1:] != graph[:-1])
    place = np.arange(len(words))
    copy = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return splitmix64(splitmix64(words, 0) + copy.astype(np.uint64), 1)


class DocumentVectors:
    """Vectors for documents, learned by negative sampling.

    PV-DBOW predicts each word w of a document from its vector v alone, PV-DM from the mean v of the
    document's vector and those of the words around w. Both maximise
    log s(u_w . v) + sum_{w' ~ noise} log s(-u_w' . v) with the logistic function s.

    Args:
        reading: "dbow" for PV-DBOW, "dm" for PV-DM.
        dimensions: the length of a vector.
        epochs: passes over the documents, in training and in inference.
        learning_rate: the initial rate, which falls linearly to 0.0001.
        window: words on each side in PV-DM.
        negative: noise words per word.
        sample: threshold above which frequent words are down-sampled.
        min_count: occurrences below which a word is ignored; at most a tenth of the number of documents.
    """

    def __init__(
        self,
        *,
        reading: Reading,
        dimensions: int,
        epochs: int,
        learning_rate: float = 0.025,
        window: int = 5,
        negative: int = 5,
        sample: float = 1e-3,
        min_count: int = 5,
    ) -> None:
        self.reading = reading
        self.dimensions = dimensions
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.window = window
        self.negative = negative
        self.sample = sample
        self.min_count = min_count
        self._state: dict[str, NDArray[Any]] = {}

    @property
    def seed(self) -> int | None:
        """The seed of the fit; None before it."""
        return int(self._state["seed"][0]) if self._state else None

    def fit(self, documents: Documents, seed: int) -> Rows:
        """Learn the vectors of words and documents together.

        Documents are read in a new order in each epoch. In the given order, a vector would reveal its
        graph's position in the collection, and many collections are sorted by class.

        Returns:
            documents x dimensions; zeros for a document without known words.
        """
        words, counts = self._vocabulary(documents)
        self._state = {"words": words, "counts": counts, "seed": np.array([seed], np.int64)}
        self._state["outputs"] = np.zeros((len(words), self.dimensions), np.float32)
        if self.reading == "dm":
            self._state["inputs"] = self._uniform(numpy_generator(seed, "words"), len(words))
        encoded = self._encode(documents)
        total = len(documents)
        # Each row starts elsewhere, unlike in `infer`: the output weights start at zero, and equal rows
        # would stay on one line.
        rows = self._uniform(numpy_generator(seed, "first rows"), total)
        tables = _Tables.of(counts, self.sample)
        for epoch in range(self.epochs):
            order = numpy_generator(seed, "reading order", epoch).permutation(total)
            rates = self._rate((epoch + np.arange(total) / total) / self.epochs)
            key = derive_seed(seed, "fit", epoch)
            self._read(encoded, encoded.ptr[:-1], order, rates, rows, tables, key, learn_words=True)
        rows[encoded.lengths == 0] = 0
        return rows

    def infer(self, documents: Documents) -> Rows:
        """Vectors of any documents with the learned words fixed; each is independent of the others.

        Returns:
            documents x dimensions; zeros for a document without known words.
        """
        seed = int(self._state["seed"][0])
        encoded = self._encode(documents)
        total = len(documents)
        rows: Rows = np.tile(self._uniform(numpy_generator(seed, "unseen"), 1), (total, 1))
        tables = _Tables.of(self._state["counts"], self.sample)
        first_draws = np.zeros(total, np.int64)  # so that all documents have the same draws
        for epoch in range(self.epochs):
            rates = np.full(total, self._rate(epoch / self.epochs))
            key = derive_seed(seed, "inference", epoch)
            order = np.arange(total)
            self._read(encoded, first_draws, order, rates, rows, tables, key, learn_words=False)
        rows[encoded.lengths == 0] = 0
        return rows

    def state(self) -> dict[str, NDArray[Any]]:
        """The vocabulary, its counts, the learned weights and the seed."""
        return dict(self._state)

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the output of `state`; raises `ValueError` where shapes do not match."""
        needed = ["words", "counts", "seed", "outputs"] + ["inputs"] * (self.reading == "dm")
        loaded = {name: state[name] for name in needed}
        # Compiled loops do not check bounds.
        shape = (len(loaded["words"]), self.dimensions)
        if loaded["counts"].shape != shape[:1] or any(loaded[name].shape != shape for name in needed[3:]):
            raise ValueError(f"weights are not those of {shape[0]} words in {shape[1]} dimensions")
        for name in needed[3:]:
            loaded[name] = np.ascontiguousarray(loaded[name], np.float32)
        self._state = loaded

    def _vocabulary(self, documents: Documents) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The words that occur often enough, the most frequent first, and their counts."""
        words, counts = np.unique(documents.words, return_counts=True)
        least = min(self.min_count, max(1, len(documents) // 10))
        order = np.lexsort((words, -counts))
        order = order[counts[order] >= least]
        if len(order) == 0:
            raise DataError(
                f"no sub-structure occurs {least} times in these {len(documents)} graphs",
                hint="lower min_count, or start from fewer distinct node labels",
            )
        return words[order].astype(np.uint64), counts[order].astype(np.int64)

    def _uniform(self, generator: np.random.Generator, rows: int) -> Rows:
        """Rows x dimensions, uniform between -1 / dimensions and 1 / dimensions."""
        start = generator.random((rows, self.dimensions), dtype=np.float32)
        return (2 * start - 1) / np.float32(self.dimensions)

    def _encode(self, documents: Documents) -> Documents:
        """The documents with words replaced by their position in the vocabulary, without unknown words."""
        words = self._state["words"]
        by_value = np.argsort(words)
        codes = [np.zeros(0, np.uint32)]
        is_known = [np.zeros(1, bool)]
        for start in range(0, len(documents.words), _CHUNK):
            chunk = documents.words[start : start + _CHUNK]
            place = np.searchsorted(words, chunk, sorter=by_value)
            code = by_value[np.minimum(place, len(words) - 1)]
            known = words[code] == chunk
            codes.append(code[known].astype(np.uint32))
            is_known.append(known)
        return Documents(np.concatenate(codes), np.cumsum(np.concatenate(is_known))[documents.ptr])

    def _read(
        self,
        encoded: Documents,
        first_draws: NDArray[np.int64],
        order: NDArray[np.int64],
        rates: NDArray[np.float64],
        rows: Rows,
        tables: _Tables,
        key: int,
        *,
        learn_words: bool,
    ) -> None:
        """Read each document of `order` once, at its rate; update the rows, and the words if they learn."""
        outputs = self._state["outputs"]
        # PV-DBOW is PV-DM without the words around a word.
        window = self.window if self.reading == "dm" else 0
        inputs = self._state["inputs"] if window else outputs[:0]
        arguments = (
            encoded.words, encoded.ptr, first_draws, order, rates.astype(np.float32), rows, inputs, outputs,
            tables.keep, tables.noise, tables.shortcut, window, self.negative, np.uint64(key), learn_words,
        )  # fmt: skip
        if use_compiled():
            from graphsc.kernels.compiled import read_documents

            read_documents(*arguments)
        else:
            _read_documents(*arguments)

    def _rate(self, progress: Any) -> Any:
        """The learning rate at a share of the training, a number or an array."""
        return self.learning_rate - max(self.learning_rate - _LAST_RATE, 0) * progress


@dataclass(frozen=True, eq=False)
class _Tables:
    """Probabilities of words as bounds for 32-bit draws."""

    keep: NDArray[np.uint64]  # a word is read if the draw is below
    noise: NDArray[np.uint64]  # cumulative: the noise word is the first whose bound is above the draw
    shortcut: NDArray[np.int64]  # the noise word of the smallest draw with these upper 16 bits

    @classmethod
    def of(cls, counts: NDArray[np.int64], sample: float) -> _Tables:
        keep = np.full(len(counts), _CERTAIN, np.uint64)
        if sample > 0:
            # Mikolov's code: a word of share s is kept with probability sqrt(t / s) + t / s.
            ratio = sample * counts.sum() / counts
            keep = (np.minimum(np.sqrt(ratio) + ratio, 1) * _CERTAIN).astype(np.uint64)
        cumulative = np.cumsum(counts**_NOISE_POWER)
        noise = np.floor(cumulative / cumulative[-1] * _CERTAIN).astype(np.uint64)
        noise[-1] = _CERTAIN
        upper = np.arange(2**_SHORTCUT_BITS, dtype=np.uint64) << np.uint64(32 - _SHORTCUT_BITS)
        return cls(keep, noise, np.searchsorted(noise, upper, side="right"))


def _read_documents(
    words: NDArray[np.uint32],
    ptr: NDArray[np.int64],
    first_draws: NDArray[np.int64],
    order: NDArray[np.int64],
    rates: NDArray[np.float32],
    rows: Rows,
    inputs: Rows,
    outputs: Rows,
    keep: NDArray[np.uint64],
    noise: NDArray[np.uint64],
    shortcut: NDArray[np.int64],
    window: int,
    negative: int,
    key: np.uint64,
    learn_words: bool,
) -> None:
    """The equivalent of `compiled.read_documents` in NumPy, about fifty times slower."""
    del shortcut  # for the compiled loop
    per_word = NOISE_DRAWS + negative
    is_target = np.zeros(negative + 1, np.float32)
    is_target[0] = 1
    for document, rate in zip(order.tolist(), rates, strict=True):
        text = words[ptr[document] : ptr[document + 1]].astype(np.int64)
        number = (first_draws[document] + np.arange(len(text)))[:, None] * per_word + np.arange(per_word)
        draws = splitmix64(key + number.astype(np.uint64) * np.uint64(GOLDEN), 0) >> np.uint64(32)
        kept = draws[:, KEEP_DRAW] < keep[text]
        text, draws = text[kept], draws[kept]
        targets = np.column_stack([text, np.searchsorted(noise, draws[:, NOISE_DRAWS:], side="right")])
        row = rows[document]
        for place, target in enumerate(targets):
            context = text[:0]
            if window:
                reach = window - int(draws[place, WINDOW_DRAW]) % window
                context = np.delete(text[max(place - reach, 0) : place + reach + 1], min(place, reach))
            hidden = (row + inputs[context].sum(0)) / np.float32(len(context) + 1) if window else row
            with np.errstate(over="ignore"):
                step = (is_target - 1 / (1 + np.exp(-(outputs[target] @ hidden)))) * rate
            step[1:][target[1:] == target[0]] = 0
            change = step @ outputs[target]
            if learn_words:
                np.add.at(outputs, target, step[:, None] * hidden)
                np.add.at(inputs, context, change)
            row += change
