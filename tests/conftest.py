"""Small collections that many tests stand on, each simple enough to be worked out by hand."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from graphsc.data.arrays import Strings
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import Column, FeatureTable

# Examples are found anew each time but no test may fail for being slow on a busy machine.
settings.register_profile("graphsc", deadline=None, max_examples=60)
settings.load_profile("graphsc")

Edges = Sequence[tuple[int, int]]
Make = Callable[..., GraphCollection]


def _make(graphs: Sequence[tuple[int, Edges]], **options: object) -> GraphCollection:
    flat = [edge for _, edges in graphs for edge in edges]
    return build_collection(
        node_counts=np.array([nodes for nodes, _ in graphs], dtype=np.int64),
        edge_counts=np.array([len(edges) for _, edges in graphs], dtype=np.int64),
        source=np.array([source for source, _ in flat], dtype=np.int64),
        destination=np.array([destination for _, destination in flat], dtype=np.int64),
        **options,
    )


@pytest.fixture(autouse=True, scope="session")
def no_wait_for_the_disk() -> Iterator[None]:
    """`os.fsync` does nothing in the tests' own process: only a loss of power could show the difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session")
def make() -> Make:
    """`make([(nodes, [(source, destination), ...]), ...], **options of build_collection)`."""
    return _make


@pytest.fixture(scope="session")
def three(make: Make) -> GraphCollection:
    """A triangle, a path of two and a lone node, undirected, with class labels."""
    triangle = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
    return make([(3, triangle), (2, [(0, 1), (1, 0)]), (1, [])], labels=np.array([1.0, 0.0, 1.0]))


@pytest.fixture
def ring_molecules(tmp_path: Path) -> Path:
    """A table of 32 molecules, rings with tails of 0 to 7 carbons; labelled by whether there is nitrogen."""
    smiles = ["C" * n + ring for ring in ("c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCNCC1") for n in range(8)]
    path = tmp_path / "made.csv"
    path.write_text("".join(["smiles,y\n", *(f"{each},{int('n' in each.lower())}\n" for each in smiles)]))
    return path


@pytest.fixture(scope="session")
def mixed(make: Make) -> GraphCollection:
    """Something of everything: codes, floats, string ids, missing labels, loops, an empty graph.

    Graphs have 3, 0, 2, 4 and 1 nodes; edges are given unsorted, and edge e (in the order given) has
    the code e % 3 and the float e / 2.
    """
    graphs = [
        (3, [(2, 0), (0, 2), (1, 1), (0, 1)]),
        (0, []),
        (2, [(1, 0)]),
        (4, [(3, 2), (0, 3), (3, 0), (2, 3), (0, 3)]),
        (1, []),
    ]
    nodes = np.arange(10)
    edges = np.arange(10)
    return make(
        graphs,
        nodes=FeatureTable.of(
            10,
            np.stack([nodes % 3, nodes % 2], axis=1),
            [Column("atom", 3, ("C", "N", "O")), Column("ring", 2)],
            np.stack([nodes / 4, -nodes], axis=1),
            ["charge", "mass"],
        ),
        edges=FeatureTable.of(
            10, (edges % 3)[:, None], [Column("bond", 3)], (edges / 2)[:, None], ["length"]
        ),
        labels=np.array([[0.1, 1], [2, np.nan], [np.nan, np.nan], [1e-40, 4], [5, 6]]),
        tasks=["energy", "toxic"],
        classes={"toxic": ("no", "yes")},
        ids=Strings.of(["a", "", "graph three", "é", "日本"]),
        name="mixed",
        features="labels+degree:5+attributes",
        allow_empty=True,
        notes=["made by hand"],
    )


@st.composite
def _graph_lists(draw: st.DrawFn) -> list[tuple[int, list[tuple[int, int]]]]:
    graphs = []
    for nodes in draw(st.lists(st.integers(0, 6), min_size=1, max_size=8)):
        node = st.integers(0, max(nodes - 1, 0))
        edges = draw(st.lists(st.tuples(node, node), max_size=12)) if nodes else []
        graphs.append((nodes, edges))
    return graphs


@pytest.fixture(scope="session")
def graph_lists() -> st.SearchStrategy[list[tuple[int, list[tuple[int, int]]]]]:
    """Lists of graphs as `make` takes them, with loops, duplicates and empty graphs among them."""
    return _graph_lists()


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str
    seconds: float  # of work
    peak: int  # kB of memory at most


@pytest.fixture(scope="session")
def graphsc() -> Iterator[Callable[..., Outcome]]:
    """`graphsc(folder, "train", ...)`: the command in that folder, in a process of its own."""
    program = [sys.executable, str(Path(__file__).with_name("commands_in_forks.py"))]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(folder: Path, *arguments: object) -> Outcome:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps([str(folder), [str(argument) for argument in arguments]]) + "\n")
        process.stdin.flush()
        return Outcome(*json.loads(process.stdout.readline()))

    yield call
    process.communicate()
