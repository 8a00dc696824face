"""Views of PyG batches: the same views, all keys aligned, single graphs restored, and PyG's own loaders."""

import gc
import weakref

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops, BaseTransform
from torch_geometric.transforms import Compose as PygCompose

from graphsc import GraphBatch, open_collection
from graphsc.core.errors import ConfigError, DataError
from graphsc.losses import nt_xent
from graphsc.views import VIEWS, Choice, Compose, DropNodes, MaskAttributes, PerturbEdges, weak_and_strong
from graphsc.views.pyg import ViewCollator, ViewTransform, apply_to_pyg


def graph(nodes, seed, **more):
    """A random graph whose keys say which node or edge they belong to."""
    edges = np.array(nx.connected_watts_strogatz_graph(nodes, 4, 0.4, seed=seed).to_directed().edges).T
    edges = torch.from_numpy(
        edges[:, np.random.default_rng(seed).permutation(edges.shape[1])].astype(np.int64)
    )
    node = torch.arange(nodes)
    return Data(
        x=torch.stack([node.float(), torch.full((nodes,), seed).float()], 1),
        edge_index=edges,
        edge_attr=torch.stack([edges[0], edges[1]], 1),
        edge_weight=(10.0 * edges[0] + edges[1] + 0.5),
        pos=torch.stack([node, -node, node], 1).double(),
        charge=node.to(torch.int16),
        y=torch.tensor([seed]),
        name=f"graph {seed}",
        descriptor=torch.full((1, 5), float(seed)),
        **more,
    )


GRAPHS = [graph(nodes, seed) for seed, nodes in enumerate((8, 12, 9, 15, 8))]


@pytest.fixture
def batch():
    return Batch.from_data_list(GRAPHS)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def check_aligned(view, *, added=False, masked=False):
    """Every key is that of its node or edge; weights of 1 are those of added edges."""
    node = view.charge.long()
    torch.testing.assert_close(view.pos, torch.stack([node, -node, node], 1).double())
    assert masked or torch.equal(view.x[:, 0].long(), node)
    old = view.edge_weight != 1.0
    assert added or bool(old.all())
    ends = node[view.edge_index]
    assert torch.equal(view.edge_attr.T[:, old], ends[:, old])
    torch.testing.assert_close(view.edge_weight[old], (10.0 * ends[0] + ends[1] + 0.5)[old])
    assert view.edge_attr.dtype == torch.int64
    assert view.charge.dtype == torch.int16
    assert view.y.tolist() == [0, 1, 2, 3, 4]
    assert view.name == [f"graph {seed}" for seed in range(5)]
    assert view.descriptor[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert torch.equal(view.batch, torch.repeat_interleave(torch.arange(5), view.ptr.diff()))


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_keeps_all_keys_with_their_nodes_and_edges(batch, name):
    before = {key: value.clone() for key, value in batch if isinstance(value, torch.Tensor)}
    view = VIEWS.get(name)()(batch, 0.3, generator())
    assert isinstance(view, Batch)
    assert set(view.keys()) == set(batch.keys())
    check_aligned(view, added="perturb" in name, masked="mask" in name)
    for key, value in before.items():
        assert torch.equal(batch[key], value), key


@pytest.mark.parametrize("name", list(VIEWS))
def test_the_view_of_a_pyg_batch_is_that_of_the_same_graphs(batch, name):
    graphs = open_collection([Data(x=g.x, edge_index=g.edge_index, edge_attr=g.edge_attr) for g in GRAPHS])
    ours = VIEWS.get(name)()(GraphBatch.of(graphs), 0.3, generator())
    theirs = VIEWS.get(name)()(batch, 0.3, generator())
    edges = (np.array(sorted(view.edge_index.T.tolist())) for view in (ours, theirs))
    np.testing.assert_array_equal(*edges)
    assert torch.equal(theirs.ptr, ours.ptr)
    torch.testing.assert_close(theirs.x, ours.dense_x())


@pytest.mark.parametrize(
    "view", [Choice(["drop-nodes", "perturb-edges"]), Compose(["subgraph", "drop-nodes"])]
)
def test_combinations_work_too(batch, view):
    check_aligned(view(batch, 0.3, generator()), added=True)


@pytest.mark.parametrize("coupling", ["same", "independent", "nested"])
@pytest.mark.parametrize("view", [DropNodes(), Choice(["drop-nodes", "perturb-edges"])])
def test_weak_and_strong_views_of_pyg_graphs_are_those_of_the_same_graphs(batch, view, coupling):
    own = GraphBatch.of(
        open_collection([Data(x=g.x, edge_index=g.edge_index, edge_attr=g.edge_attr) for g in GRAPHS])
    )
    expected = weak_and_strong(view, own, 0.1, 0.4, generator(), coupling)
    found = weak_and_strong(view, batch, 0.1, 0.4, generator(), coupling)
    for one, other in zip(found, expected, strict=True):
        check_aligned(one, added=True)
        assert sorted(one.edge_index.T.tolist()) == sorted(other.edge_index.T.tolist())


def test_a_single_graph_has_weak_and_strong_views():
    choice = Choice(["drop-nodes", "subgraph"])
    for pair in (
        weak_and_strong(choice, GRAPHS[3], 0.1, 0.4, generator()),
        choice.nested(GRAPHS[3], 0.1, 0.4, generator()),
    ):
        assert [view.num_nodes for view in pair] == [13, 9]  # of 15, without 2 (1.5 rounded to even) and 6
        assert all(type(view) is Data for view in pair)


@pytest.mark.parametrize("kind", [HeteroData, list], ids=["hetero", "list"])
def test_graphs_of_another_kind_are_named_in_the_error(kind):
    for call in (lambda: DropNodes()(kind(), 0.1, generator()),
                 lambda: DropNodes().nested(kind(), 0.1, 0.2, generator())):  # fmt: skip
        with pytest.raises(TypeError, match=f"a GraphBatch or a PyG batch, not {kind.__name__}"):
            call()


def test_single_graphs_are_restored_from_a_view(batch):
    view = DropNodes()(batch, 0.3, generator())
    parts = view.to_data_list()
    again = Batch.from_data_list(parts)
    for key, value in view:
        assert torch.equal(value, again[key]) if isinstance(value, torch.Tensor) else value == again[key], key
    assert all(part.edge_index.max() < part.num_nodes for part in parts)


def test_a_view_of_a_view_and_of_a_single_graph(batch):
    check_aligned(DropNodes()(PerturbEdges(mode="drop")(batch, 0.2, generator()), 0.2, generator(1)))
    one = DropNodes()(GRAPHS[1], 0.5, generator())
    assert isinstance(one, Data)
    assert not isinstance(one, Batch)
    assert one.num_nodes == 6
    assert torch.equal(one.x[:, 0].long(), one.charge.long())


def test_noise_is_written_into_float_x(batch):
    view = MaskAttributes(mean=50.0, std=0.0)(batch, 0.5, generator())
    changed = (view.x == 50.0).all(1)
    assert changed.sum() == sum(round(g.num_nodes * 0.5) for g in GRAPHS)
    assert torch.equal(view.x[~changed], batch.x[~changed])


def test_integers_are_masked_by_a_token_and_never_by_noise():
    graphs = [Data(x=torch.arange(6)[:, None] * 2, edge_index=g.edge_index[:, :0]) for g in GRAPHS]
    batch = Batch.from_data_list(graphs)
    with pytest.raises(ConfigError, match="integer x cannot hold noise"):
        MaskAttributes()(batch, 0.5, generator())
    features = open_collection(graphs).features  # codes of 0 .. 10
    view = ViewTransform(MaskAttributes(token=7), 0.5, features=features, seed=0)(batch)
    assert view.x.dtype == torch.int64
    assert ((view.x == 7).sum(), (view.x % 2 == 0).sum()) == (15, 15)


def test_what_cannot_follow_a_view_is_refused():
    with pytest.raises(ConfigError, match="no x to mask"):
        MaskAttributes()(Data(num_nodes=4, edge_index=GRAPHS[0].edge_index[:, :0]), 0.5, generator())
    data = Batch.from_data_list([graph(8, 0, partner_index=torch.arange(8))])
    with pytest.raises(ConfigError, match="partner_index holds numbers of nodes"):
        DropNodes()(data, 0.5, generator())
    assert "partner_index" in PerturbEdges()(data, 0.5, generator())
    with pytest.raises(DataError, match="not among the 3"):
        DropNodes()(Data(num_nodes=3, edge_index=torch.tensor([[0], [3]])), 0.5, generator())
    with pytest.raises(TypeError, match="not list"):
        DropNodes()([], 0.5, generator())


def test_graphs_without_x_keep_their_number_of_nodes():
    batch = Batch.from_data_list([Data(num_nodes=g.num_nodes, edge_index=g.edge_index) for g in GRAPHS])
    view = DropNodes()(batch, 0.5, generator())
    assert view.num_nodes == int(view.ptr[-1]) == len(view.batch)
    assert [part.num_nodes for part in view.to_data_list()] == view.ptr.diff().tolist()


def test_keys_that_follow_others_stay_with_them():
    view = DropNodes()(Batch.from_data_list(GRAPHS, follow_batch=["x", "edge_attr"]), 0.4, generator())
    assert torch.equal(view.x_batch, view.batch)
    assert torch.equal(view.edge_attr_batch, view.batch[view.edge_index[1]])
    assert torch.equal(view.edge_attr_ptr.diff(), torch.bincount(view.edge_attr_batch))


def test_a_key_of_every_graph_is_none_of_its_only_node():
    batch = Batch.from_data_list([Data(x=torch.ones(1, 1), score=torch.tensor([k])) for k in range(4)])
    assert DropNodes()(batch, 0.9, generator()).score.tolist() == [0, 1, 2, 3]


def test_edges_that_change_in_place_are_sorted_again(batch):
    first = PerturbEdges(mode="drop")(batch, 0.5, generator())
    batch.edge_index[:] = batch.edge_index.flip(0)
    second = PerturbEdges(mode="drop")(batch, 0.5, generator())
    assert not torch.equal(first.edge_attr, second.edge_attr)
    node = second.charge.long()
    assert torch.equal(second.edge_attr.T.flip(0), node[second.edge_index])


def labelled_batch():
    """A batch of integers that a scheme knows, and the scheme."""
    graphs = [Data(x=g.charge.long()[:, None] + 3, edge_index=g.edge_index) for g in GRAPHS]
    return Batch.from_data_list(graphs), open_collection(graphs).features


def test_features_that_change_between_two_views_are_seen_by_the_second():
    batch, features = labelled_batch()
    transform = ViewTransform("perturb-edges", 0.5, features=features)
    before = transform(batch).x.clone()
    batch.x.numpy()[:] = batch.x.flip(0).numpy()  # torch does not count this as a change
    assert torch.equal(transform(batch).x, before.flip(0))
    batch.x.numpy()[4] = 99
    with pytest.raises(DataError, match="has the value 99"):
        transform(batch)


def test_graphs_whose_bounds_change_between_two_views_are_dropped_from_anew(batch):
    assert DropNodes()(batch, 0.5, generator()).ptr.diff().tolist() == [4, 6, 5, 7, 4]
    batch.ptr[1] += 4  # now 12, 8, 9, 15 and 8 nodes
    assert DropNodes()(batch, 0.5, generator()).ptr.diff().tolist() == [6, 4, 5, 7, 4]


def test_gradients_of_the_second_view_reach_the_features_it_was_given(batch):
    first, second = (batch.x.clone().requires_grad_() for _ in range(2))
    for x in (first, second):
        batch.x = x
        PerturbEdges()(batch, 0.5, generator()).x.sum().backward()
    assert torch.equal(second.grad, torch.ones_like(second))
    assert torch.equal(first.grad, torch.ones_like(first))


def test_the_second_view_of_a_batch_is_that_of_a_fresh_one():
    batch, features = labelled_batch()
    for name in ("drop-nodes", "perturb-edges", "subgraph"):
        views = [ViewTransform(name, 0.3, features=features, seed=3)(g) for g in (batch, batch.clone())]
        assert torch.equal(views[0].edge_index, views[1].edge_index)
        assert torch.equal(views[0].x, views[1].x)


def test_nothing_of_a_batch_is_kept_after_it():
    batch = Batch.from_data_list(GRAPHS)
    DropNodes()(batch, 0.3, generator())
    x = weakref.ref(batch.x)
    del batch
    gc.collect()
    assert x() is None


def test_views_work_in_inference_mode_and_after_it(batch):
    with torch.inference_mode():
        check_aligned(DropNodes()(Batch.from_data_list(GRAPHS), 0.3, generator()))
        DropNodes()(batch, 0.3, generator())
    batch.x.requires_grad_()
    view = DropNodes()(batch, 0.3, generator())
    view.x.sum().backward()
    assert batch.x.grad[:, 0].sum() == view.num_nodes


def test_a_transform_works_in_pygs_compose_and_data_sets(batch):
    transform = PygCompose([ViewTransform("drop-nodes", 0.25), AddSelfLoops()])
    assert isinstance(transform.transforms[0], BaseTransform)
    assert transform(GRAPHS[1]).num_nodes == 9
    assert repr(transform.transforms[0]) == "ViewTransform(DropNodes, 0.25)"
    torch.manual_seed(0)
    first = ViewTransform("drop-nodes", 0.5)(batch)
    torch.manual_seed(0)
    assert torch.equal(ViewTransform("drop-nodes", 0.5)(batch).charge, first.charge)
    seeded = ViewTransform("drop-nodes", 0.5, seed=4)
    assert not torch.equal(seeded(batch).charge, seeded(batch).charge)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_collator_gives_views_of_the_same_graphs_to_pygs_loader(workers):
    loader = DataLoader(GRAPHS * 4, batch_size=8, num_workers=workers)
    loader.collate_fn = ViewCollator(
        None, ViewTransform("drop-nodes", 0.2), ViewTransform("perturb-edges", 0.2)
    )
    seen = 0
    for whole, first, second in loader:
        assert whole.name == first.name == second.name
        assert (first.ptr.diff() < whole.ptr.diff()).all()
        assert torch.equal(second.ptr, whole.ptr)
        seen += whole.num_graphs
    assert seen == 20


def test_losses_take_the_output_of_a_pyg_model(batch):
    from torch_geometric.nn import GCN, global_add_pool

    model = GCN(2, 8, 2)
    rows = [
        global_add_pool(model(view.x, view.edge_index), view.batch)
        for view in (DropNodes()(batch, 0.2, generator(seed)) for seed in (1, 2))
    ]
    loss = nt_xent(*rows)
    loss.backward()
    assert torch.isfinite(loss)
    assert model.convs[0].lin.weight.grad.abs().sum() > 0


def test_without_compiled_loops_the_views_are_the_same(batch, monkeypatch):
    from graphsc.data import pyg_batch
    from graphsc.views import array_ops

    expected = PerturbEdges(mode="drop")(batch, 0.3, generator())
    monkeypatch.setattr(pyg_batch, "use_compiled", lambda: False)
    monkeypatch.setattr(array_ops, "use_compiled", lambda: False)
    batch.edge_index = batch.edge_index.clone()
    again = PerturbEdges(mode="drop")(batch, 0.3, generator())
    assert torch.equal(again.edge_index, expected.edge_index)
    assert torch.equal(again.edge_attr, expected.edge_attr)


def test_a_function_of_batches_can_be_applied(batch):
    view = apply_to_pyg(lambda own: own, batch)
    assert view is not batch
    assert torch.equal(view.x, batch.x)
