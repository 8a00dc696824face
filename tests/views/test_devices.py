"""Where NumPy cannot help, torch alone must do the same."""

from __future__ import annotations

import networkx
import pytest
import torch

from graphsc.views import VIEWS, Choice, Compose, PerturbEdges, array_ops

OWN = {
    **{name: VIEWS.get(name)() for name in VIEWS},
    "edges-drop": PerturbEdges(mode="drop"),
    "choice": Choice(["drop-nodes", "perturb-edges", "mask-attributes", "subgraph"]),
    "compose": Compose(["perturb-edges", "subgraph", "perturb-edges"]),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", sorted(OWN))
def test_torch_alone_makes_the_same_view(make, tensors, seeded, monkeypatch, name, directed):
    graphs = [(1, []), (6, [(0, 1), (0, 1), (2, 2), (3, 4)]), (0, []), (90, [(0, 1), (4, 70)])]
    for seed, chance in enumerate((0.1, 0.3, 0.95)):
        graph = networkx.gnp_random_graph(20, chance, seed=seed)
        graphs.append((20, list(graph.edges)))
    results = []
    for numpy in (True, False):
        with monkeypatch.context() as patch:
            if not numpy:
                patch.setattr(array_ops, "numpy_serves", lambda values: False)
            again = make(graphs, directed=directed)  # nothing remembered from the other way
            results.append([tensors(OWN[name](again, rate, seeded(5))) for rate in (0.2, 0.7)])
    for with_numpy, without in zip(*results, strict=True):
        assert with_numpy.keys() == without.keys()
        assert all(torch.equal(without[key], value) for key, value in with_numpy.items())
