"""GL: the graphlet kernel (Shervashidze et al., AISTATS 2009)."""

from __future__ import annotations

from graphsc.data.collection import GraphCollection
from graphsc.kernels.gram import Matrix
from graphsc.kernels.graphlets import graphlet_counts, graphlet_frequencies
from graphsc.methods.fitted import VectorKernel
from graphsc.methods.registry import METHODS, MethodEntry


class Graphlets(VectorKernel):
    """Cosine of the frequencies of graphlets of three and four nodes, counted exactly.

    Those that are not connected count too, as in the original; `connected` leaves them out.
    """

    def __init__(self, *, connected: bool = False) -> None:
        self.connected = connected

    def vectors(self, collection: GraphCollection) -> Matrix:
        return graphlet_frequencies(graphlet_counts(collection), self.connected)


METHODS.register("gl")(
    MethodEntry(
        Graphlets, "Efficient Graphlet Kernels for Large Graph Comparison", 2009,
        "frequencies of the graphlets of three and four nodes", kind="gram",
    )
)  # fmt: skip
