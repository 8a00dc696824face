"""Paragraph vectors (Le and Mikolov, 2014): graphs as documents, one vector per document.

The inner loop is gensim's `train_document_dbow` and `train_document_dm`. Its `Doc2Vec.train` and
`infer_vector` are not used, because a seed must determine every vector, and the vector of an unseen document
must not depend on other documents: `train` reads documents in the given order, `infer_vector` draws from
the state that earlier calls left, and both silently ignore words after the 10,000th.
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
from graphsc.kernels.weisfeiler_lehman import Start, splitmix64, wl_labels

Reading = Literal["dbow", "dm"]
Rows = NDArray[np.float32]

_MAX_WORDS = 10_000  # gensim ignores the rest of a document
_LAST_RATE = 0.0001  # the final learning rate, gensim's
_CHUNK = 4_000_000  # words looked up at once, to bound memory
_UNLOCKED = np.ones(1, dtype=np.float32)


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
        self._model: Any = None
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
        self._model = self._build()
        encoded = self._encode(documents)
        total = len(documents)
        # Each row starts elsewhere, unlike in `infer`: the output weights start at zero, and equal rows
        # would stay on one line.
        start = numpy_generator(seed, "first rows").random((total, self.dimensions), dtype=np.float32)
        rows: Rows = (2 * start - 1) / np.float32(self.dimensions)
        for epoch in range(self.epochs):
            order = numpy_generator(seed, "reading order", epoch).permutation(total).tolist()
            for place, document in enumerate(order):
                rate = self._rate((epoch + place / total) / self.epochs)
                for piece in self._pieces(encoded, document):
                    self._train(piece, rows, document, rate, learn_words=True)
        rows[encoded.lengths == 0] = 0
        self._state["outputs"] = self._model.syn1neg
        if self.reading == "dm":
            self._state["inputs"] = self._model.wv.vectors
        return rows

    def infer(self, documents: Documents) -> Rows:
        """Vectors of any documents with the learned words fixed; each is independent of the others.

        Returns:
            documents x dimensions; zeros for a document without known words.
        """
        if self._model is None:
            self._model = self._build()
            self._model.syn1neg = np.array(self._state["outputs"], np.float32, order="C")
            if self.reading == "dm":
                self._model.wv.vectors = np.array(self._state["inputs"], np.float32, order="C")
        seed = int(self._state["seed"][0])
        draws = derive_seed(seed, "inference") % 2**32
        encoded = self._encode(documents)
        start = numpy_generator(seed, "unseen").random(self.dimensions, dtype=np.float32)
        rows: Rows = np.tile((2 * start - 1) / np.float32(self.dimensions), (len(documents), 1))
        for document in range(len(documents)):
            self._model.random = np.random.RandomState(draws)
            pieces = list(self._pieces(encoded, document))
            for epoch in range(self.epochs):
                rate = self._rate(epoch / self.epochs)
                for piece in pieces:
                    self._train(piece, rows, document, rate, learn_words=False)
        rows[encoded.lengths == 0] = 0
        return rows

    def state(self) -> dict[str, NDArray[Any]]:
        """The vocabulary, its counts, the learned weights and the seed."""
        return dict(self._state)

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the output of `state`; raises `ValueError` where shapes do not match."""
        needed = ["words", "counts", "seed", "outputs"] + ["inputs"] * (self.reading == "dm")
        loaded = {name: state[name] for name in needed}
        # gensim reads weights by address: it would read beyond the end of an array that is too small.
        shape = (len(loaded["words"]), self.dimensions)
        if loaded["counts"].shape != shape[:1] or any(loaded[name].shape != shape for name in needed[3:]):
            raise ValueError(f"weights are not those of {shape[0]} words in {shape[1]} dimensions")
        self._state = loaded
        self._model = None

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

    def _build(self) -> Any:
        """A gensim model of the vocabulary with gensim's initial weights; word i is called str(i)."""
        doc2vec = require("gensim.models.doc2vec")
        counts = self._state["counts"].tolist()
        model = doc2vec.Doc2Vec(
            vector_size=self.dimensions,
            dm=int(self.reading == "dm"),
            window=self.window,
            negative=self.negative,
            sample=self.sample,
            min_count=1,
            sorted_vocab=0,  # already sorted, ties included
            workers=1,
            seed=derive_seed(int(self._state["seed"][0]), "words") % 2**32,
        )
        model.build_vocab_from_freq({str(word): count for word, count in enumerate(counts)})
        model.names = np.array(model.wv.index_to_key, dtype=object)
        return model

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

    def _pieces(self, encoded: Documents, document: int) -> Iterator[list[str]]:
        """A document in pieces short enough for gensim to read completely."""
        names = self._model.names
        begin, end = int(encoded.ptr[document]), int(encoded.ptr[document + 1])
        for start in range(begin, end, _MAX_WORDS):
            yield names[encoded.words[start : min(start + _MAX_WORDS, end)]].tolist()

    def _train(self, words: list[str], rows: Rows, document: int, rate: float, *, learn_words: bool) -> None:
        """One pass over the words of a document; updates its row, and the words' weights if they learn."""
        gensim = require("gensim.models.doc2vec")
        # gensim frees work arrays of its own before it has used them.
        buffers = {"work": np.zeros(self.dimensions, np.float32)}
        train = gensim.train_document_dbow
        if self.reading == "dm":
            train = gensim.train_document_dm
            buffers["neu1"] = np.zeros(self.dimensions, np.float32)
        train(
            self._model, words, [document], rate, **buffers,
            learn_words=learn_words, learn_hidden=learn_words,
            doctag_vectors=rows, doctags_lockf=_UNLOCKED,
        )  # fmt: skip

    def _rate(self, progress: float) -> float:
        return self.learning_rate - max(self.learning_rate - _LAST_RATE, 0) * progress
