"""graph2vec against Graph2Vec as the Karate Club library computes it.

The peer is written here from the library's description, because the library itself does not install beside
current versions of NumPy and NetworkX. It does what costs time there: Weisfeiler-Lehman words as md5 digests
of joined strings, node by node on a NetworkX graph, then gensim's `Doc2Vec`.
"""

from __future__ import annotations

import hashlib

import networkx
import numpy as np
from gensim.models.doc2vec import Doc2Vec, TaggedDocument
from threadpoolctl import threadpool_limits

from benchmarks.cases import collection_of, present
from benchmarks.measure import Result, interleave
from graphsc.data.collection import GraphCollection
from graphsc.methods.graph2vec import Graph2Vec

DIMENSIONS, ROUNDS, EPOCHS = 128, 2, 10  # the defaults of both
SAMPLE, LEARNING_RATE, MIN_COUNT = 1e-4, 0.025, 5  # the library's
SETS = ("proteins", "nci1")


def labelled_graphs(collection: GraphCollection) -> list[networkx.Graph]:
    """Undirected graphs with one label per node, as the library takes them."""
    graphs = []
    codes = np.split(collection.nodes.codes[:, 0], collection.node_ptr[1:-1])
    for graph, labels in zip(collection.graphs(), codes, strict=True):
        made = networkx.Graph()
        made.add_nodes_from((node, {"feature": int(label)}) for node, label in enumerate(labels))
        made.add_edges_from(graph.edge_index.T.tolist())
        graphs.append(made)
    return graphs


def subtree_words(graph: networkx.Graph, rounds: int) -> list[str]:
    """The words of a document: of each node its label, and a digest for each round of refinement."""
    labels = {node: str(label) for node, label in graph.nodes(data="feature")}
    words = {node: [label] for node, label in labels.items()}
    for _ in range(rounds):
        refined = {}
        for node in graph.nodes():
            around = sorted(labels[other] for other in graph.neighbors(node))
            refined[node] = hashlib.md5("_".join([labels[node], *around]).encode()).hexdigest()
        labels = refined
        for node, label in labels.items():
            words[node].append(label)
    return [word for of_node in words.values() for word in of_node]


def peer_vectors(graphs: list[networkx.Graph], sample: float) -> np.ndarray:
    documents = [
        TaggedDocument(subtree_words(graph, ROUNDS), [str(number)]) for number, graph in enumerate(graphs)
    ]
    model = Doc2Vec(
        documents, vector_size=DIMENSIONS, window=0, min_count=MIN_COUNT, dm=0, sample=sample, workers=1,
        epochs=EPOCHS, alpha=LEARNING_RATE, seed=0,
    )  # fmt: skip
    return np.array([model.dv[str(number)] for number in range(len(graphs))])


def run() -> list[Result]:
    same = {"dimensions": DIMENSIONS, "iterations": ROUNDS, "epochs": EPOCHS}
    results = []
    for name in present(SETS):
        collection = collection_of(name)
        graphs = labelled_graphs(collection)
        default = Graph2Vec(**same)
        for case, method, sample, bar, goal in (
            ("learned rows", Graph2Vec(**same, sample=SAMPLE, rows="learned"), SAMPLE, 2.0, 3.0),
            ("default, the peer without down-sampling", default, default.paragraphs.sample, 1.0, None),
            ("default, the peer's default", default, SAMPLE, 1.0, None),
        ):

            def ours(method=method, collection=collection) -> None:
                method.fit(collection, 0)

            def peer(graphs=graphs, sample=sample) -> None:
                peer_vectors(graphs, sample)

            with threadpool_limits(1):
                results.append(
                    interleave(
                        "graph2vec", f"{name} ({len(collection):,} graphs), {case}", ours, peer, bar=bar,
                        goal=goal, better="higher", against="Graph2Vec of Karate Club, rewritten",
                        repeats=5, warm_up=1,
                    )
                )  # fmt: skip
    return results
