"""Paragraph vectors against the update written out, and their independence of order and processes."""

import os
import subprocess
import sys
from bisect import bisect_left

import numpy as np
import pytest

from graphsc.core.errors import DataError, MissingExtraError
from graphsc.core.random import derive_seed, numpy_generator
from graphsc.data.arrays import pointer
from graphsc.kernels.doc2vec import Documents, DocumentVectors

pytest.importorskip("gensim")


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


@pytest.mark.parametrize("reading", ["dbow", "dm"])
def test_documents_of_a_kind_are_closer(reading):
    assert spread(vectors(reading=reading, epochs=30, window=2).fit(topics(), 0)) < 0.6


def test_unseen_documents_of_a_kind_are_closer():
    method = vectors(epochs=30)
    method.fit(topics(), 0)
    assert spread(method.infer(topics(seed=1))) < 0.6


def test_inference_is_the_update_written_out():
    """Gradient steps on log s(u_w . v) + sum log s(-u_noise . v), with the draws that gensim makes."""
    method = vectors(epochs=3, negative=4)
    method.fit(topics(), 7)
    text = [104, 201, 100, 100, 999]  # the last is not known
    state = method.state()
    position = {int(word): place for place, word in enumerate(state["words"])}
    share = np.cumsum(state["counts"] ** 0.75) / np.sum(state["counts"] ** 0.75)
    noise = np.round(share * (2**31 - 1)).astype(np.int64).tolist()
    start = numpy_generator(7, "unseen").random(8, dtype=np.float32)
    v = (2 * start.astype(float) - 1) / 8
    draw = np.random.RandomState(derive_seed(7, "inference") % 2**32)
    for epoch in range(3):
        rate = 0.025 - (0.025 - 0.0001) * epoch / 3
        bits = 2**24 * int(draw.randint(0, 2**24)) + int(draw.randint(0, 2**24))
        for word in text[:4]:
            target = position[word]
            step = (1 - sigmoid(state["outputs"][target] @ v)) * state["outputs"][target]
            for _ in range(4):
                other = bisect_left(noise, (bits >> 16) % noise[-1])
                bits = (bits * 25214903917 + 11) % 2**48
                if other != target:
                    step = step - sigmoid(state["outputs"][other] @ v) * state["outputs"][other]
            v = v + rate * step
    # gensim looks the logistic function up in a table of 1,000 steps from -6 to 6.
    np.testing.assert_allclose(method.infer(documents_of(text))[0], v, atol=5e-4)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


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


def test_words_beyond_the_ten_thousandth_count():
    """gensim stops there: documents that differ only later would have the same vector."""
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
imported = "gensim" in sys.modules
graphs = read_motifs("motifs:40")
digests = []
texts = {"dbow": subgraph_documents(graphs, 2), "dm": walk_documents(graphs, 40, 5, "structure")}
for reading, documents in texts.items():
    method = DocumentVectors(reading=reading, dimensions=16, epochs=5)
    rows = method.fit(documents, 5).tobytes() + method.infer(documents).tobytes()
    digests.append(hashlib.sha256(rows).hexdigest())
print(*digests, imported)
"""


def test_every_process_finds_the_same_vectors_and_imports_gensim_late():
    """Python hashes a string to another value in every process."""
    here = {}
    exec(PROGRAM, here)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "12345"},
    )  # fmt: skip
    assert done.stdout.split() == [*here["digests"], "False"]


class NoGensim:
    """An import finder without gensim."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "gensim":
            raise ModuleNotFoundError("No module named 'gensim'", name="gensim")


def test_without_gensim_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "gensim"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoGensim(), *sys.meta_path])
    with pytest.raises(MissingExtraError, match=r"needs gensim; pip install 'graphsc\[kernels\]'"):
        vectors().fit(topics(), 0)


@pytest.mark.parametrize("reading", ["dbow", "dm"])
def test_many_dimensions_do_not_end_the_process(reading):
    """gensim uses a work array after it was freed; above 1,024 bytes that memory belongs to others."""
    code = f"""
import numpy as np
from graphsc.data.arrays import pointer
from graphsc.kernels.doc2vec import Documents, DocumentVectors
words = np.random.default_rng(0).integers(0, 300, 12_000).astype(np.uint64)
documents = Documents(words, pointer(np.full(60, 200)))
rows = DocumentVectors(dimensions=512, epochs=10, reading={reading!r}).fit(documents, 0)
print(rows.shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "(60, 512)"), done.stderr
