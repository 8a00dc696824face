"""Paragraph vectors against the update written out, and their independence of order and processes."""

import math
import os
import subprocess
import sys
from bisect import bisect_right
from itertools import accumulate

import numpy as np
import pytest

from graphsc.core.compiled import use_compiled
from graphsc.core.errors import DataError
from graphsc.core.random import derive_seed, numpy_generator
from graphsc.data.arrays import pointer
from graphsc.kernels import doc2vec
from graphsc.kernels.doc2vec import Documents, DocumentVectors


@pytest.fixture(params=["compiled", "numpy"])
def path(request, monkeypatch):
    """Run a test with the compiled loop and with its equivalent."""
    if request.param == "numpy":
        monkeypatch.setattr(doc2vec, "use_compiled", lambda: False)
    elif not use_compiled():
        pytest.skip("numba cannot be used here")


def documents_of(*texts):
    words = np.array([word for text in texts for word in text], dtype=np.uint64)
    return Documents(words, pointer(np.array([len(text) for text in texts])))


def topics(number=20, length=12, seed=0):
    """Documents of two kinds in turn: words 100 to 104, or words 200 to 204."""
    draw = np.random.default_rng(seed)
    return documents_of(
        *[(100 + 100 * (i % 2) + draw.integers(0, 5, length)).tolist() for i in range(number)]
    )


def vectors(**changes):
    return DocumentVectors(**{"reading": "dbow", "dimensions": 8, "epochs": 10, "sample": 0.0} | changes)


def spread(rows):
    """Mean distance within a kind, as a share of that between the two kinds."""
    distance = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    same = np.equal.outer(np.arange(len(rows)) % 2, np.arange(len(rows)) % 2)
    return distance[same & ~np.eye(len(rows), dtype=bool)].mean() / distance[~same].mean()


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("reading", ["dbow", "dm"])
def test_documents_of_a_kind_are_closer(reading):
    assert spread(vectors(reading=reading, epochs=30, window=2).fit(topics(), 0)) < 0.6


def test_unseen_documents_of_a_kind_are_closer():
    method = vectors(epochs=30)
    method.fit(topics(), 0)
    assert spread(method.infer(topics(seed=1))) < 0.6


class WrittenOut:
    """Paragraph vectors by definition, one number after the other."""

    def __init__(self, method, seed, words, counts, outputs, inputs):
        self.method, self.seed = method, seed
        self.code = {int(word): place for place, word in enumerate(words)}
        self.outputs, self.inputs = outputs.astype(float), inputs.astype(float)
        threshold = method.sample * sum(counts)
        self.keep = [min(1, math.sqrt(threshold / count) + threshold / count) for count in counts]
        if not method.sample:
            self.keep = [1] * len(counts)
        weights = list(accumulate(count**0.75 for count in counts))
        self.noise = [math.floor(weight / weights[-1] * 2**32) for weight in weights]

    def draw(self, key, word, number):
        """The upper half of a number of SplitMix64's stream; each word has two draws and its noise."""
        mixed = (key + (word * (2 + self.method.negative) + number + 1) * 0x9E3779B97F4A7C15) % 2**64
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        return (mixed ^ (mixed >> 31)) >> 32

    def read(self, text, first, row, rate, key, learn):
        """Gradient steps on log s(u_w . h) + sum log s(-u_noise . h), h the mean of row and context."""
        codes = [self.code[word] for word in text if word in self.code]
        numbered = [
            (first + place, code)
            for place, code in enumerate(codes)
            if self.draw(key, first + place, 0) < self.keep[code] * 2**32
        ]
        for place, (number, target) in enumerate(numbered):
            context = []
            if self.method.reading == "dm":
                reach = self.method.window - self.draw(key, number, 1) % self.method.window
                near = range(max(place - reach, 0), min(place + reach + 1, len(numbered)))
                context = [numbered[other][1] for other in near if other != place]
            hidden = (row + sum(self.inputs[word] for word in context)) / (len(context) + 1)
            drawn = [
                bisect_right(self.noise, self.draw(key, number, 2 + k)) for k in range(self.method.negative)
            ]
            pairs = [(target, 1 - sigmoid(self.outputs[target] @ hidden))]
            pairs += [(word, -sigmoid(self.outputs[word] @ hidden)) for word in drawn if word != target]
            change = rate * sum(slope * self.outputs[word] for word, slope in pairs)
            if learn:
                for word, slope in pairs:
                    self.outputs[word] += rate * slope * hidden
                for word in context:
                    self.inputs[word] += change
            row += change


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def uniform(seed, purpose, rows, width=8):
    return (2 * numpy_generator(seed, purpose).random((rows, width), dtype=np.float32) - 1) / width


def rate_at(progress):
    return 0.025 - (0.025 - 0.0001) * progress


SETTINGS = [
    {"reading": "dbow", "sample": 0.0},
    {"reading": "dbow", "sample": 0.05},
    {"reading": "dm", "sample": 0.0},
    {"reading": "dm", "sample": 0.05, "window": 3},
]


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_fit_is_the_update_written_out(settings):
    method = vectors(epochs=3, negative=4, **settings)
    documents = topics(number=12)
    rows = method.fit(documents, 7)
    state = method.state()
    words = len(state["words"])
    expected = WrittenOut(
        method, 7, state["words"], state["counts"], np.zeros((words, 8)), uniform(7, "words", words)
    )
    by_hand = uniform(7, "first rows", 12).astype(float)
    for epoch in range(3):
        order = numpy_generator(7, "reading order", epoch).permutation(12)
        for place, document in enumerate(order):
            start, end = documents.ptr[document : document + 2]
            rate = rate_at((epoch + place / 12) / 3)
            key = derive_seed(7, "fit", epoch)
            expected.read(documents.words[start:end].tolist(), int(start), by_hand[document], rate, key, True)
    np.testing.assert_allclose(rows, by_hand, atol=2e-6)
    np.testing.assert_allclose(state["outputs"], expected.outputs, atol=2e-6)
    if settings["reading"] == "dm":
        np.testing.assert_allclose(state["inputs"], expected.inputs, atol=2e-6)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("settings", SETTINGS)
def test_inference_is_the_update_written_out(settings):
    method = vectors(epochs=3, negative=4, **settings)
    method.fit(topics(), 7)
    text = [104, 201, 100, 100, 999]  # the last is not known
    state = {name: value.copy() for name, value in method.state().items()}
    inputs = state.get("inputs", state["outputs"])
    expected = WrittenOut(method, 7, state["words"], state["counts"], state["outputs"], inputs)
    row = uniform(7, "unseen", 1)[0].astype(float)
    for epoch in range(3):
        expected.read(text, 0, row, rate_at(epoch / 3), derive_seed(7, "inference", epoch), False)
    np.testing.assert_allclose(method.infer(documents_of([100], text))[1], row, atol=2e-6)
    for name, value in method.state().items():
        assert np.array_equal(value, state[name]), f"inference changed {name}"


def test_without_down_sampling_every_word_moves_its_output_weights():
    """And with a low threshold most words are dropped, so that some never do."""
    method, sparse = vectors(epochs=1, negative=1), vectors(epochs=1, negative=1, sample=1e-6)
    method.fit(topics(), 0)
    sparse.fit(topics(), 0)
    assert method.state()["outputs"].any(axis=1).all()
    assert not sparse.state()["outputs"].any(axis=1).all()


def test_noise_words_are_drawn_by_their_counts_to_the_power_of_three_quarters():
    counts = np.array([81, 16, 16, 1])  # 27, 8, 8 and 1 to the power of 3/4
    tables = doc2vec._Tables.of(counts, 0.0)
    shares = np.diff(tables.noise.astype(np.int64), prepend=0) / 2**32
    np.testing.assert_allclose(shares, np.array([27, 8, 8, 1]) / 44, atol=1e-9)


@pytest.mark.parametrize("reading", ["dbow", "dm"])
def test_rows_of_unseen_documents_do_not_depend_on_their_neighbours(reading):
    method = vectors(reading=reading, sample=1e-2)
    method.fit(topics(), 0)
    unseen = topics(6, seed=5)
    together = method.infer(unseen)
    texts = [unseen.words[a:b].tolist() for a, b in zip(unseen.ptr[:-1], unseen.ptr[1:], strict=True)]
    alone = [method.infer(documents_of(texts[place]))[0] for place in (3, 0, 5, 1, 2, 4)]
    assert np.array_equal(alone, together[[3, 0, 5, 1, 2, 4]])


def test_the_seed_determines_the_rows():
    rows = [vectors().fit(topics(), seed) for seed in (3, 3, 4)]
    assert np.array_equal(rows[0], rows[1])
    assert not np.allclose(rows[0], rows[2], atol=1e-3)


@pytest.mark.parametrize("reading", ["dbow", "dm"])
def test_a_loaded_state_infers_the_same(reading):
    method = vectors(reading=reading)
    method.fit(topics(), 2)
    loaded = vectors(reading=reading)
    loaded.load_state(method.state())
    assert loaded.seed == 2
    assert np.array_equal(loaded.infer(topics(seed=9)), method.infer(topics(seed=9)))


@pytest.mark.parametrize("name", ["outputs", "counts"])
def test_weights_of_another_size_are_refused(name):
    method = vectors()
    method.fit(topics(), 0)
    with pytest.raises(ValueError, match="10 words in 8 dimensions"):
        vectors().load_state(method.state() | {name: method.state()[name][:-1]})


def test_empty_and_unknown_documents_have_rows_of_zeros():
    method = vectors()
    rows = method.fit(documents_of([], *[[1, 2, 3]] * 60, [77]), 0)
    assert not rows[[0, 61]].any()
    assert rows[1:61].any(axis=1).all()
    unseen = method.infer(documents_of([77, 78], [], [1]))
    assert not unseen[:2].any()
    assert unseen[2].any()


def test_long_documents_are_read_to_the_end():
    method = vectors()
    method.fit(topics(), 0)
    plain = [100] * 10_000
    rows = method.infer(documents_of([*plain, *[100] * 500], [*plain, *[200] * 500]))
    assert not np.allclose(rows[0], rows[1], atol=1e-3)


@pytest.mark.parametrize(("documents", "expected"), [(50, [5]), (30, [3, 5]), (9, [1, 3, 5])])
def test_small_collections_have_a_lower_minimum_count(documents, expected):
    """Three words that occur 5, 3 and 1 times; words must occur min(5, documents / 10) times."""
    texts = [[1]] * 5 + [[2]] * 3 + [[3]] + [[]] * (documents - 9)
    method = vectors(min_count=5)
    method.fit(documents_of(*texts), 0)
    assert sorted(method.state()["counts"].tolist()) == expected


def test_a_collection_of_rare_words_only_is_refused():
    with pytest.raises(DataError, match=r"no sub-structure occurs 4 times.*lower min_count"):
        vectors().fit(documents_of(*[[word] for word in range(40)]), 0)


def test_rows_do_not_stay_on_one_line():
    rows = vectors(epochs=60).fit(topics(), 0)
    sizes = np.linalg.svd(rows, compute_uv=False)
    assert sizes[1] > 0.05 * sizes[0]


PROGRAM = """
import hashlib, sys
from graphsc.data.readers.synthetic import read_motifs
from graphsc.kernels.doc2vec import DocumentVectors, subgraph_documents
from graphsc.kernels.random_walks import walk_documents
imported = "numba" in sys.modules
graphs = read_motifs("motifs:40")
digests = []
texts = {"dbow": subgraph_documents(graphs, 2), "dm": walk_documents(graphs, 40, 5, "structure")}
for reading, documents in texts.items():
    method = DocumentVectors(reading=reading, dimensions=16, epochs=5)
    rows = method.fit(documents, 5).tobytes() + method.infer(documents).tobytes()
    digests.append(hashlib.sha256(rows).hexdigest())
print(*digests, imported)
"""


def test_every_process_finds_the_same_vectors_and_imports_numba_late():
    here = {}
    exec(PROGRAM, here)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "12345"},
    )  # fmt: skip
    assert done.stdout.split() == [*here["digests"], "False"]
