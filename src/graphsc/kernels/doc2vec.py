"""Paragraph vectors: one vector a document, such that it predicts the document's words.

Le and Mikolov, 2014. The inner loop is gensim's; visiting order, first vectors and inference are ours, so
that a seed decides everything and an unseen document's vector depends on that document alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.random import derive_seed, numpy_generator
from graphsc.core.registry import require
from graphsc.data.arrays import pointer
from graphsc.data.collection import GraphCollection
from graphsc.kernels.weisfeiler_lehman import Start, mix, wl_labels

# Graphs as documents: each graph a text whose words are the sub-graphs rooted at its nodes.


@dataclass(frozen=True, eq=False)
class Documents:
    """Texts laid end to end: document i is `words[ptr[i]:ptr[i + 1]]`, a word is a number."""

    words: NDArray[np.unsignedinteger]
    ptr: NDArray[np.int64]  # documents + 1

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.ptr)


def subgraph_documents(collection: GraphCollection, iterations: int, start: Start = "auto") -> Documents:
    """For each graph the Weisfeiler-Lehman colours of its nodes after 0, 1, ..., `iterations` rounds.

    A graph of n nodes has n (iterations + 1) words. They stand in an order that looks random but depends
    on the words alone, so that graphs that differ in the order of their nodes are the same document.
    """
    rounds = wl_labels(collection, iterations, start)
    lengths = np.diff(collection.node_ptr)
    graph = np.tile(np.repeat(np.arange(len(collection)), lengths), len(rounds))
    words = np.concatenate(rounds)
    order = np.lexsort((words, graph))
    words, graph = words[order], graph[order]
    shuffled = np.lexsort((_scatter(words, graph), graph))
    return Documents(words[shuffled], pointer(lengths * len(rounds)))


def _scatter(words: NDArray[np.uint64], graph: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A key for each of sorted words that tells the first, second, ... copy of a word apart."""
    fresh = np.ones(len(words), dtype=bool)
    fresh[1:] = (words[1:] != words[:-1]) | (graph[1:] != graph[:-1])
    place = np.arange(len(words))
    copy = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return mix(mix(words, 0) + copy.astype(np.uint64), 1)


Reading = Literal["dbow", "dm"]
Rows = NDArray[np.float32]
LONGEST = 10_000  # words; gensim silently stops reading a document there
LAST_RATE = 0.0001  # what the learning rate falls to, gensim's
_CHUNK = 4_000_000  # words looked up at once, so that long walks need no more memory than they have words
_UNLOCKED = np.ones(1, dtype=np.float32)


class DocumentVectors:
    """Vectors for documents, learned by negative sampling.

    `dbow` (PV-DBOW) predicts each word w of document d from its vector alone, `dm` (PV-DM) from the mean of
    that vector and those of the words around w: maximise log s(u_w . v) + sum_{w' ~ noise} log s(-u_w' . v).
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
        self._model: Any = None
        self._state: dict[str, NDArray[Any]] = {}

    @property
    def seed(self) -> int | None:
        """The seed of the fit; None before it."""
        return int(self._state["seed"][0]) if self._state else None

    def fit(self, documents: Documents, seed: int) -> Rows:
        """Learn words and documents together; a document without a known word has a row of zeros.

        Documents are read in a new order each epoch. In the order given, a vector would tell where in the
        collection its graph stands, and many collections are sorted by class.
        """
        words, counts = self._vocabulary(documents)
        self._state = {"words": words, "counts": counts, "seed": np.array([seed], np.int64)}
        self._model = model = self._build()
        known = self._known(documents)
        total = len(documents)
        # Not one start for all, as in `infer`: from zero word weights, all would stay on one line for ever.
        start = numpy_generator(seed, "first rows").random((total, self.dimensions), dtype=np.float32)
        rows: Rows = (2 * start - 1) / np.float32(self.dimensions)
        for epoch in range(self.epochs):
            order = numpy_generator(seed, "reading order", epoch).permutation(total).tolist()
            for place, document in enumerate(order):
                rate = self._rate((epoch + place / total) / self.epochs)
                for part in self._parts(known, document):
                    self._read(model, part, rows, document, rate, learn=True)
        rows[known.lengths == 0] = 0
        self._state["outputs"] = model.syn1neg
        if self.reading == "dm":
            self._state["inputs"] = model.wv.vectors
        return rows

    def infer(self, documents: Documents) -> Rows:
        """Rows for any documents by the words learned before; each as if it were the only one."""
        if self._model is None:
            self._model = self._build()
            self._model.syn1neg = np.array(self._state["outputs"], np.float32, order="C")
            if self.reading == "dm":
                self._model.wv.vectors = np.array(self._state["inputs"], np.float32, order="C")
        seed = int(self._state["seed"][0])
        draws = derive_seed(seed, "inference") % 2**32
        known = self._known(documents)
        start = numpy_generator(seed, "unseen").random(self.dimensions, dtype=np.float32)
        rows: Rows = np.tile((2 * start - 1) / np.float32(self.dimensions), (len(documents), 1))
        for document in range(len(documents)):
            self._model.random = np.random.RandomState(draws)
            parts = list(self._parts(known, document))
            for epoch in range(self.epochs):
                for part in parts:
                    self._read(
                        self._model, part, rows, document, self._rate(epoch / self.epochs), learn=False
                    )
        rows[known.lengths == 0] = 0
        return rows

    def state(self) -> dict[str, NDArray[Any]]:
        """The words, how often each was met, the weights that predict them, and the seed."""
        return dict(self._state)

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `state` gave."""
        needed = ["words", "counts", "seed", "outputs"] + ["inputs"] * (self.reading == "dm")
        loaded = {name: state[name] for name in needed}
        # gensim reads weights by address: what is too small would be read beyond its end.
        shape = (len(loaded["words"]), self.dimensions)
        if loaded["counts"].shape != shape[:1] or any(loaded[name].shape != shape for name in needed[3:]):
            raise ValueError(f"weights are not those of {shape[0]} words in {shape[1]} dimensions")
        self._state = loaded
        self._model = None

    def _vocabulary(self, documents: Documents) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The words that occur often enough, the most frequent first."""
        words, counts = np.unique(documents.words, return_counts=True)
        # In a small collection five times is often; a tenth of the documents is not.
        lowest = min(self.min_count, max(1, len(documents) // 10))
        order = np.lexsort((words, -counts))
        order = order[counts[order] >= lowest]
        if len(order) == 0:
            raise DataError(
                f"no sub-structure occurs {lowest} times in these {len(documents)} graphs",
                hint="lower min_count, or start from fewer distinct node labels",
            )
        return words[order].astype(np.uint64), counts[order].astype(np.int64)

    def _build(self) -> Any:
        """A gensim model of this vocabulary, with gensim's first weights; word i is called str(i)."""
        doc2vec = require("gensim.models.doc2vec")
        counts = self._state["counts"].tolist()
        model = doc2vec.Doc2Vec(
            vector_size=self.dimensions,
            dm=int(self.reading == "dm"),
            window=self.window,
            negative=self.negative,
            sample=self.sample,
            min_count=1,
            sorted_vocab=0,  # it is sorted already, ties included
            workers=1,
            seed=derive_seed(int(self._state["seed"][0]), "words") % 2**32,
        )
        model.build_vocab_from_freq({str(word): count for word, count in enumerate(counts)})
        model.names = np.array(model.wv.index_to_key, dtype=object)
        return model

    def _known(self, documents: Documents) -> Documents:
        """The documents in positions of the vocabulary, unknown words left out."""
        words = self._state["words"]
        by_value = np.argsort(words)
        codes = [np.zeros(0, np.uint32)]
        met = [np.zeros(1, bool)]
        for start in range(0, len(documents.words), _CHUNK):
            chunk = documents.words[start : start + _CHUNK]
            place = np.searchsorted(words, chunk, sorter=by_value)
            code = by_value[np.minimum(place, len(words) - 1)]
            known = words[code] == chunk
            codes.append(code[known].astype(np.uint32))
            met.append(known)
        return Documents(np.concatenate(codes), np.cumsum(np.concatenate(met))[documents.ptr])

    def _parts(self, known: Documents, document: int) -> Iterator[list[str]]:
        """A document in pieces that gensim reads to their end."""
        names = self._model.names
        begin, end = int(known.ptr[document]), int(known.ptr[document + 1])
        for start in range(begin, end, LONGEST):
            yield names[known.words[start : min(start + LONGEST, end)]].tolist()

    def _read(
        self, model: Any, words: list[str], rows: Rows, document: int, rate: float, learn: bool
    ) -> None:
        """One pass over some words of a document; changes its row, and the words' weights if they learn."""
        inner = require("gensim.models.doc2vec")
        read = inner.train_document_dm if self.reading == "dm" else inner.train_document_dbow
        read(
            model, words, [document], rate,
            learn_words=learn, learn_hidden=learn,
            doctag_vectors=rows, doctags_lockf=_UNLOCKED,
        )  # fmt: skip

    def _rate(self, progress: float) -> float:
        return self.learning_rate - max(self.learning_rate - LAST_RATE, 0) * progress
