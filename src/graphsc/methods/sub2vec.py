"""sub2vec: graphs as documents of random walks (Adhikari et al., 2018)."""

from __future__ import annotations

from graphsc.core.errors import ConfigError
from graphsc.data.collection import GraphCollection
from graphsc.kernels.doc2vec import Documents, DocumentVectors, Reading
from graphsc.kernels.random_walks import Property, walk_documents
from graphsc.methods.fitted import DocumentMethod, Origin, check_at_least
from graphsc.methods.registry import METHODS, MethodEntry


class Sub2Vec(DocumentMethod):
    """One vector per graph that helps to predict the next step of a random walk on it.

    Words are node ids (`neighbourhood`), or ids for a share of the walk and degree ranges for the rest
    (`structure`); vectors are learned by PV-DM. Walks have 1,000 steps; as published they have 100,000.
    """

    def __init__(
        self,
        *,
        property: Property = "structure",  # noqa: A002 - the paper's word
        walk_length: int = 1000,
        id_share: float = 0.5,
        dimensions: int = 128,
        window: int = 2,
        epochs: int = 20,
        reading: Reading = "dm",
        learning_rate: float = 0.025,
        negative: int = 5,
        sample: float = 1e-3,
        min_count: int = 5,
        rows: Origin = "inferred",
    ) -> None:
        check_at_least(0, sample=sample, learning_rate=learning_rate)
        check_at_least(1, dimensions=dimensions, epochs=epochs, negative=negative, min_count=min_count)
        check_at_least(1, walk_length=walk_length, window=window)
        if not 0 <= id_share <= 1:
            raise ConfigError(f"id_share must lie between 0 and 1, not {id_share}")
        paragraphs = DocumentVectors(
            reading=reading,
            dimensions=dimensions,
            epochs=epochs,
            learning_rate=learning_rate,
            window=window,
            negative=negative,
            sample=sample,
            min_count=min_count,
        )
        super().__init__(paragraphs, rows)
        self.property: Property = property
        self.walk_length = walk_length
        self.id_share = id_share

    def documents(self, collection: GraphCollection, seed: int) -> Documents:
        return walk_documents(collection, self.walk_length, seed, self.property, self.id_share)


METHODS.register("sub2vec")(
    MethodEntry(
        Sub2Vec,
        "Sub2Vec: Feature Learning for Subgraphs",
        2018,
        "graphs as documents of random walks, embedded by PV-DM; walks of 1,000 steps, not 100,000",
        kind="fitted",
        contrast="a graph with the steps of random walks on it",
        negatives="random steps",
        presets={
            # As far as known, the run behind the numbers that InfoGraph published and others copied.
            "published": {
                "property": "neighbourhood",
                "walk_length": 100_000,
                "dimensions": 512,
                "rows": "learned",
            },
        },
    )
)
