"""graph2vec: graphs as documents of rooted subgraphs (Narayanan et al., 2017)."""

from __future__ import annotations

from graphsc.data.collection import GraphCollection
from graphsc.kernels.doc2vec import Documents, DocumentVectors, subgraph_documents
from graphsc.kernels.weisfeiler_lehman import Start
from graphsc.methods.fitted import DocumentMethod, Origin, check_at_least
from graphsc.methods.registry import METHODS, MethodEntry


class Graph2Vec(DocumentMethod):
    """One vector per graph that predicts the subgraphs rooted at its nodes.

    Words are the Weisfeiler-Lehman colours of rounds 0 to `iterations`; vectors are learned by PV-DBOW.
    """

    def __init__(
        self,
        *,
        dimensions: int = 128,
        iterations: int = 2,
        start: Start = "auto",
        epochs: int = 10,
        learning_rate: float = 0.025,
        negative: int = 5,
        sample: float = 0.0,
        min_count: int = 5,
        rows: Origin = "inferred",
        unit_rms: bool = False,
    ) -> None:
        check_at_least(0, iterations=iterations, sample=sample, learning_rate=learning_rate)
        check_at_least(1, dimensions=dimensions, epochs=epochs, negative=negative, min_count=min_count)
        paragraphs = DocumentVectors(
            reading="dbow",
            dimensions=dimensions,
            epochs=epochs,
            learning_rate=learning_rate,
            negative=negative,
            sample=sample,
            min_count=min_count,
        )
        super().__init__(paragraphs, rows, unit_rms)
        self.iterations = iterations
        self.start: Start = start

    def documents(self, collection: GraphCollection, seed: int) -> Documents:
        del seed  # there is nothing random
        return subgraph_documents(collection, self.iterations, self.start)


METHODS.register("graph2vec")(
    MethodEntry(
        Graph2Vec,
        "graph2vec: Learning Distributed Representations of Graphs",
        2017,
        "graphs as documents of Weisfeiler-Lehman subgraphs, embedded by PV-DBOW",
        kind="fitted",
        contrast="a graph with the subgraphs rooted at its nodes",
        negatives="random subgraphs",
        presets={
            # The run behind the numbers that InfoGraph published and others copied.
            "published": {
                "dimensions": 512,
                "iterations": 3,
                "epochs": 1000,
                "negative": 10,
                "min_count": 1,
                "rows": "learned",
                "unit_rms": True,
            },
            # The settings of the Karate Club library, which is widely used.
            "karateclub": {"sample": 1e-4, "rows": "learned"},
        },
    )
)
