"""The molecule encoder against the same network built from PyG's parts, weight for weight."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import MessagePassing, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.utils import add_self_loops

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch, join
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.readers import open_collection
from graphsc.encoders import MoleculeGin, embed, reestimate_batchnorm
from graphsc.encoders.molecule_gin import bond_counts

POOLS = {"sum": global_add_pool, "mean": global_mean_pool, "max": global_max_pool}


def molecules(
    seed: int = 0, sizes: tuple[int, ...] = (5, 1, 9, 3, 12, 2), chirality: int = 3
) -> GraphCollection:
    """Random trees with a ring and few atom types, so that many atoms are equal; size 1 has no bond."""
    rng = np.random.default_rng(seed)
    pairs, kinds = [], []
    for size in sizes:
        edges = {(int(rng.integers(0, node)), node) for node in range(1, size)}
        edges |= {(0, size - 1)} if size > 2 else set()
        pairs.append(np.array(sorted(edges), dtype=np.int64).reshape(-1, 2))
        kinds.append(np.stack([rng.integers(0, 6, len(edges)), rng.integers(0, 3, len(edges))], 1))
    both = [np.concatenate([one, one[:, ::-1]]) for one in pairs]
    edges, bonds = np.concatenate(both), np.concatenate([np.concatenate([one, one]) for one in kinds])
    total = sum(sizes)
    atoms = np.stack([rng.choice([5, 6, 119], total), rng.integers(0, chirality, total)], 1)
    return build_collection(
        node_counts=np.array(sizes),
        edge_counts=np.array([len(one) for one in both]),
        allow_empty=0 in sizes,
        source=edges[:, 0],
        destination=edges[:, 1],
        nodes=FeatureTable.of(total, atoms, [Column("atom", 120), Column("chirality", 4)]),
        edges=FeatureTable.of(len(bonds), bonds, [Column("bond", 6), Column("direction", 3)]),
    )


def batch_of(seed: int = 0, **options: object) -> GraphBatch:
    return GraphBatch.of(molecules(seed, **options))


class ReferenceConv(MessagePassing):
    """A layer of Hu et al.: messages written out, one vector per edge."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__(aggr="add")
        self.block = block

    def forward(self, x, edge_index, edge_attr, edge_weight):
        loops, _ = add_self_loops(edge_index, num_nodes=len(x))
        own = torch.zeros(len(x), 2, dtype=torch.int64)
        own[:, 0] = 4
        edge_attr = torch.cat([edge_attr, own])
        edge_weight = torch.cat([edge_weight, edge_weight.new_ones(len(x))])
        bonds = self.block.bond(edge_attr[:, 0]) + self.block.direction(edge_attr[:, 1])
        total = self.propagate(loops, x=x, bonds=bonds, weight=edge_weight)
        return self.block.second(self.block.first(total).relu())

    def message(self, x_j, bonds, weight):
        return weight[:, None] * (x_j + bonds)


def reference(encoder: MoleculeGin, batch: GraphBatch) -> torch.Tensor:
    """In training mode, without dropout."""
    x = encoder.atoms.atom(batch.codes[:, 0]) + encoder.atoms.chirality(batch.codes[:, 1])
    if encoder.charges:
        x = x + encoder.atoms.charge(batch.codes[:, 2]) + encoder.atoms.hydrogens(batch.codes[:, 3])
    weight = torch.ones(batch.num_edges, dtype=x.dtype) if batch.edge_weight is None else batch.edge_weight
    found = [x]
    for number, block in enumerate(encoder.blocks):
        x = ReferenceConv(block)(x, batch.edge_index, batch.edge_codes, weight)
        x = nn.functional.batch_norm(x, None, None, block.norm.weight, block.norm.bias, training=True)
        if number < len(encoder.blocks) - 1:
            x = x.relu()
        found.append(x)
    joined = {
        "last": lambda: x,
        "concat": lambda: torch.cat(found, 1),
        "max": lambda: torch.stack(found).max(0).values,
        "sum": lambda: sum(found),
    }[encoder.layers]()
    return POOLS[encoder.readout](joined, batch.batch, batch.num_graphs)


def build_encoder(batch: GraphBatch, seed: int = 0, **settings: object) -> MoleculeGin:
    """In double precision, with BatchNorm's weights and biases moved from one and zero."""
    torch.manual_seed(seed)
    encoder = MoleculeGin(batch.features, **({"width": 12} | settings)).double()
    for block in encoder.blocks:
        nn.init.normal_(block.norm.weight)
        nn.init.normal_(block.norm.bias)
    return encoder


def gradients(encoder: MoleculeGin, rows: torch.Tensor) -> dict[str, torch.Tensor]:
    encoder.zero_grad()
    factors = torch.randn(rows.shape, generator=torch.Generator().manual_seed(3), dtype=rows.dtype)
    (rows * factors).sum().backward()
    return {name: weight.grad.clone() for name, weight in encoder.named_parameters()}


def assert_same(encoder: MoleculeGin, batch: GraphBatch) -> None:
    ours, theirs = encoder(batch), reference(encoder, batch)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(gradients(encoder, ours), gradients(encoder, theirs), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("layers", "readout"),
    [("last", "mean"), ("last", "sum"), ("concat", "mean"), ("max", "max"), ("sum", "mean")],
)
def test_equals_pyg_parts_forward_and_gradients(layers, readout):
    batch = batch_of(1)
    assert_same(build_encoder(batch, layers=layers, readout=readout), batch)


def test_five_layers_of_300_equal_pyg_parts():
    batch = batch_of(2)
    encoder = build_encoder(batch, width=300)
    assert len(encoder.blocks) == 5
    assert encoder.dimensions == 300
    assert_same(encoder, batch)


def test_repeated_molecules():
    once = molecules(3)
    batch = GraphBatch.gather(once, np.array([2, 4, 2, 2, 0]))
    assert_same(build_encoder(batch), batch)


def test_edge_weights_scale_messages_and_bonds_and_have_a_gradient():
    weight = torch.rand(batch_of(4).num_edges, dtype=torch.float64)
    found = []
    for run in (lambda encoder, batch: encoder(batch), reference):
        own = weight.clone().requires_grad_()
        batch = replace(batch_of(4), edge_weight=own)
        encoder = build_encoder(batch)
        rows = run(encoder, batch)
        found.append([rows, gradients(encoder, rows), own.grad])
    torch.testing.assert_close(*found, rtol=1e-8, atol=1e-8)


def test_directed_edges_are_not_treated_as_symmetric():
    batch = batch_of(5)
    some = torch.arange(batch.num_edges) % 3 > 0
    rowptr = torch.cat([torch.zeros(1, dtype=torch.int32), some.cumsum(0).int()])[batch.rowptr.long()]
    directed = replace(
        batch, source=batch.source[some], rowptr=rowptr, edge_codes=batch.edge_codes[some], undirected=False
    )
    assert_same(build_encoder(directed), directed)
    weighted = replace(directed, edge_weight=torch.rand(directed.num_edges, dtype=torch.float64))
    assert_same(build_encoder(weighted), weighted)


def test_molecules_without_bonds():
    batch = batch_of(6, sizes=(1, 1, 1, 1))
    assert batch.num_edges == 0
    assert_same(build_encoder(batch), batch)


def test_a_fourth_chirality_has_a_row_of_its_own():
    batch = batch_of(7, chirality=4)
    assert (batch.codes[:, 1] == 3).any()
    encoder = build_encoder(batch)
    encoder(batch).square().sum().backward()
    assert encoder.atoms.chirality.weight.grad[3].abs().sum() > 0


def test_bond_counts_by_hand():
    collection = build_collection(
        node_counts=np.array([3]),
        edge_counts=np.array([4]),
        source=np.array([0, 1, 1, 2]),
        destination=np.array([1, 0, 2, 1]),
        nodes=FeatureTable.of(3, np.array([[5, 0]] * 3), [Column("atom", 120), Column("chirality", 4)]),
        edges=FeatureTable.of(
            4, np.array([[1, 0], [1, 0], [3, 2], [3, 2]]), [Column("bond", 6), Column("direction", 3)]
        ),
    )
    # Types 0 to 5, then directions 0 to 2; each atom has type 4 and direction 0 once for its self-loop.
    assert bond_counts(GraphBatch.of(collection)).tolist() == [
        [0, 1, 0, 0, 1, 0, 2, 0, 0],
        [0, 1, 0, 1, 1, 0, 2, 0, 1],
        [0, 0, 0, 1, 1, 0, 1, 0, 1],
    ]


def test_embeddings_do_not_depend_on_atom_order():
    collection = molecules(8, sizes=(14,))
    batch = GraphBatch.of(collection)
    permutation = np.random.default_rng(0).permutation(14)
    inverse = np.argsort(permutation)
    permuted = build_collection(
        node_counts=np.array([14]),
        edge_counts=np.array([batch.num_edges]),
        source=inverse[collection.edge_index[0]],
        destination=inverse[collection.edge_index[1]],
        nodes=collection.nodes.take(permutation),
        edges=collection.edges,
    )
    encoder = build_encoder(batch).eval()
    torch.testing.assert_close(encoder(batch), encoder(GraphBatch.of(permuted)), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(
        encoder.nodes(batch)[permutation], encoder.nodes(GraphBatch.of(permuted)), rtol=1e-9, atol=1e-9
    )


def test_embeddings_do_not_depend_on_the_batch_in_evaluation():
    collection = molecules(9)
    encoder = build_encoder(GraphBatch.of(collection)).float()
    reestimate_batchnorm(encoder, collection)
    together = embed(encoder, collection)
    alone = np.concatenate([embed(encoder, collection[graph]) for graph in range(len(collection))])
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-5)


def test_reestimated_statistics_are_those_of_all_atoms():
    collection = molecules(10)
    batch = GraphBatch.of(collection)
    encoder = build_encoder(batch)
    reestimate_batchnorm(encoder, collection, batch_size=2)
    x = encoder.atoms.atom(batch.codes[:, 0]) + encoder.atoms.chirality(batch.codes[:, 1])
    if encoder.charges:
        x = x + encoder.atoms.charge(batch.codes[:, 2]) + encoder.atoms.hydrogens(batch.codes[:, 3])
    weight = torch.ones(batch.num_edges, dtype=torch.float64)
    for block in encoder.blocks:
        x = ReferenceConv(block)(x, batch.edge_index, batch.edge_codes, weight)
        torch.testing.assert_close(block.norm.running_mean, x.mean(0))
        torch.testing.assert_close(block.norm.running_var, x.var(0))
        x = block.norm(x).relu()


def test_running_statistics_equal_those_of_torch():
    batch = batch_of(11)
    encoder = build_encoder(batch, depth=1)
    encoder(batch)
    block = encoder.blocks[0]
    plain = nn.BatchNorm1d(12).double()
    x = encoder.atoms.atom(batch.codes[:, 0]) + encoder.atoms.chirality(batch.codes[:, 1])
    if encoder.charges:
        x = x + encoder.atoms.charge(batch.codes[:, 2]) + encoder.atoms.hydrogens(batch.codes[:, 3])
    weight = torch.ones(batch.num_edges, dtype=torch.float64)
    plain(ReferenceConv(block)(x, batch.edge_index, batch.edge_codes, weight))
    torch.testing.assert_close(block.norm.running_mean, plain.running_mean)
    torch.testing.assert_close(block.norm.running_var, plain.running_var)
    assert int(block.norm.num_batches_tracked) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_of_one_pass_equal_separate_passes(weighted):
    batches = [batch_of(seed) for seed in (1, 1, 2)]
    if weighted:
        batches = [replace(batch, edge_weight=torch.ones(batch.num_edges).double()) for batch in batches]
    one = build_encoder(batches[0])
    other = copy.deepcopy(one)
    together = one(join(batches), [batch.num_nodes for batch in batches])
    apart = torch.cat(other.encode_batches(batches))
    torch.testing.assert_close(together, apart, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(gradients(one, together), gradients(other, apart), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(dict(one.named_buffers()), dict(other.named_buffers()))


def test_dropout_applies_after_every_layer_in_training_only():
    batch = batch_of(12)
    encoder = build_encoder(batch, dropout=0.5, width=40, depth=2)
    torch.manual_seed(0)
    _, first, last = encoder.node_layers(batch)
    # Nothing follows BatchNorm in the last layer, so every zero there was dropped.
    assert 0.4 < float((last == 0).double().mean()) < 0.6
    assert 0.6 < float((first == 0).double().mean()) < 0.9
    torch.testing.assert_close(encoder.eval()(batch), encoder(batch), rtol=0, atol=0)


def test_dropout_of_equal_atoms_is_independent():
    twice = GraphBatch.gather(molecules(13, sizes=(6,)), np.array([0, 0]))
    one, other = build_encoder(twice, dropout=0.5)(twice)
    assert not torch.equal(one, other)


def test_dense_rows_equal_the_codes_they_encode():
    batch = batch_of(14)
    encoder = build_encoder(batch)
    dense = torch.zeros(2, 124, dtype=torch.float64)
    dense[0, 6] = dense[0, 120 + 1] = 1.0
    dense[1, 119] = dense[1, 120 + 2] = 1.0
    codes = batch.codes.clone()
    codes[[3, 8]] = torch.tensor([[6, 1], [119, 2]])
    soft = replace(batch, replaced=torch.tensor([3, 8]), replacement=dense)
    torch.testing.assert_close(encoder(soft), encoder(replace(batch, codes=codes)), rtol=1e-9, atol=1e-9)


def with_charges(collection: GraphCollection) -> GraphCollection:
    """The same molecules with random charges and hydrogens."""
    rng = np.random.default_rng(5)
    own = collection.nodes
    states = np.stack([rng.integers(0, 6, len(own)), rng.integers(0, 5, len(own))], 1)
    columns = [*own.columns, Column("charge", 6), Column("hydrogens", 5)]
    nodes = FeatureTable.of(len(own), np.concatenate([own.codes.astype(np.int64), states], 1), columns)
    return replace(collection, nodes=nodes).with_features("labels")


@pytest.mark.parametrize("charges", [False, True])
def test_charges_and_hydrogens_are_embedded_where_asked_for(charges):
    batch = GraphBatch.of(with_charges(molecules()))
    assert_same(build_encoder(batch, depth=3, charges=charges), batch)


def test_without_charges_the_encoder_is_that_of_molecules_without_them():
    plain, charged = molecules(), with_charges(molecules())
    for layers in ("last", "balanced"):
        encoders = []
        for collection in (plain, charged):
            torch.manual_seed(1)
            encoders.append(MoleculeGin(collection.features, depth=2, width=8, layers=layers).eval())
        one, other = (embed(e, c, 8) for e, c in zip(encoders, (plain, charged), strict=True))
        np.testing.assert_array_equal(one, other)


def test_dense_rows_of_charged_atoms_equal_the_codes_they_encode():
    batch = GraphBatch.of(with_charges(molecules(14)))
    dense = torch.zeros(1, 135, dtype=torch.float64)
    dense[0, [6, 120 + 1, 124 + 2, 130 + 3]] = 1.0
    codes = batch.codes.clone()
    codes[3] = torch.tensor([6, 1, 2, 3])
    soft = replace(batch, replaced=torch.tensor([3]), replacement=dense)
    for charges in (False, True):
        encoder = build_encoder(batch, charges=charges)
        torch.testing.assert_close(encoder(soft), encoder(replace(batch, codes=codes)), rtol=1e-9, atol=1e-9)


def test_acetic_acid_and_acetate_differ_with_charges_alone():
    pytest.importorskip("rdkit")
    pair = open_collection(["CC(=O)O", "CC(=O)[O-]"])
    for charges in (False, True):
        torch.manual_seed(0)
        acid, base = embed(MoleculeGin(pair.features, depth=2, width=8, charges=charges).eval(), pair, 8)
        assert np.array_equal(acid, base) is not charges


def test_charges_are_refused_for_molecules_without_them():
    with pytest.raises(ConfigError, match="neither charges nor hydrogens"):
        MoleculeGin(molecules().features, charges=True)


def test_importance_weights_nodes_in_the_readout():
    batch = batch_of(15)
    importance = torch.rand(batch.num_nodes, dtype=torch.float64)
    encoder = build_encoder(batch, readout="sum").eval()
    expected = global_add_pool(encoder.nodes(batch) * importance[:, None], batch.batch)
    torch.testing.assert_close(encoder(batch, importance=importance), expected)


def test_half_precision_is_close_to_full():
    batch = batch_of(16)
    encoder = build_encoder(batch).float()
    exact = encoder(batch).detach()
    for changed in (batch, replace(batch, edge_weight=torch.ones(batch.num_edges))):
        with torch.autocast("cpu", torch.bfloat16):
            rows = encoder(changed)
        assert all(grad.isfinite().all() for grad in gradients(encoder, rows.float()).values())
        assert float((rows.detach() - exact).abs().max()) < 0.2 * float(exact.abs().max())


def test_embeddings_are_xavier_uniform():
    torch.manual_seed(0)
    encoder = MoleculeGin(batch_of().features)
    tables = [
        encoder.atoms.atom,
        encoder.atoms.chirality,
        encoder.blocks[0].bond,
        encoder.blocks[0].direction,
    ]
    assert [len(table.weight) for table in tables] == [120, 4, 6, 3]
    for table in tables:
        bound = (6 / (len(table.weight) + 300)) ** 0.5
        assert 0.95 * bound < float(table.weight.detach().abs().max()) <= bound


def test_reinitialised_has_the_same_architecture_and_other_weights():
    encoder = build_encoder(batch_of(), depth=2, layers="concat", dropout=0.1).float()
    other = encoder.reinitialised()
    assert (other.dimensions, other.dropout, len(other.blocks)) == (36, 0.1, 2)
    assert not torch.equal(encoder.atoms.atom.weight, other.atoms.atom.weight)
    deeper = encoder.reinitialised(depth=4)
    assert (deeper.dimensions, deeper.depth, len(deeper.blocks)) == (60, 4, 4)


def test_other_node_columns_are_refused(make_collection):
    with pytest.raises(ConfigError, match="atom and chirality, not atom, chirality, attribute0"):
        MoleculeGin(make_collection(floats=1).features)
    with pytest.raises(ConfigError, match=r"not \(degree\)"):
        MoleculeGin(molecules().with_features("degree").features)


def test_edges_without_bonds_are_refused(make_collection):
    collection = make_collection()
    with pytest.raises(ConfigError, match="bond and direction; these have none"):
        MoleculeGin(collection.features)(GraphBatch.of(collection))


def test_bonds_out_of_range_are_refused():
    batch = batch_of()
    codes = batch.edge_codes.clone()
    codes[0, 1] = 3
    with pytest.raises(ConfigError, match="direction 3"):
        build_encoder(batch)(replace(batch, edge_codes=codes))


def test_graphs_with_other_features_are_refused(make_collection):
    with pytest.raises(ConfigError, match="other features"):
        build_encoder(batch_of())(replace(batch_of(), features=make_collection().features))


@pytest.mark.parametrize("settings", [{"depth": 0}, {"width": 0}, {"dropout": 1.0}, {"dropout": -0.1}])
def test_sizes_out_of_range_are_refused(settings):
    with pytest.raises(ConfigError, match="at least"):
        MoleculeGin(batch_of().features, **settings)


def trained_like(encoder: MoleculeGin) -> MoleculeGin:
    """The encoder in evaluation mode, with BatchNorm layers that are not the identity."""
    generator = torch.Generator().manual_seed(1)
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm1d):
            for values in (module.weight.data, module.running_var):
                values.uniform_(0.5, 2, generator=generator)
            for values in (module.bias.data, module.running_mean):
                values.normal_(generator=generator)
    return encoder.eval()


@pytest.mark.parametrize("readout", ["mean", "sum", "max"])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_inference_gives_the_rows_of_the_forward_pass(readout, depth, monkeypatch):
    """In chunks of eight rows, with a graph larger than a chunk and one without nodes."""
    monkeypatch.setattr("graphsc.encoders.molecule_gin._CHUNK", 8)
    batch = GraphBatch.of(molecules(3, sizes=(5, 1, 9, 0, 3, 12, 2, 2)))
    torch.manual_seed(0)
    encoder = trained_like(MoleculeGin(batch.features, depth=depth, width=20, readout=readout))
    with torch.no_grad():
        expected = encoder(batch)
    with torch.inference_mode():
        torch.testing.assert_close(encoder(batch), expected, rtol=1e-5, atol=1e-5)


def test_inference_applies_the_second_linear_layer_to_graphs_instead_of_nodes(monkeypatch):
    """The shapes of all matrix products: 34 nodes, 6 graphs."""
    batch = batch_of(3)
    encoder = trained_like(MoleculeGin(batch.features, depth=1, width=20))
    shapes = []
    multiply = torch.addmm
    monkeypatch.setattr(
        torch, "addmm", lambda *args, **more: shapes.append(args[1].shape) or multiply(*args, **more)
    )
    with torch.inference_mode():
        encoder(batch)
    assert [tuple(shape) for shape in shapes] == [(batch.num_graphs, 40)]


@pytest.mark.parametrize("layers", ["concat", "max", "sum"])
def test_inference_of_several_layers_is_the_forward_pass(layers):
    batch = batch_of(3)
    encoder = trained_like(MoleculeGin(batch.features, depth=3, width=20, layers=layers))
    with torch.no_grad():
        expected = encoder(batch)
    with torch.inference_mode():
        assert torch.equal(encoder(batch), expected)


def test_balanced_layers_are_sums_and_means_of_counts_and_layers():
    collection = molecules()
    encoder = MoleculeGin(collection.features, depth=2, width=8, layers="balanced")
    reestimate_batchnorm(encoder, collection)
    batch = GraphBatch.of(collection)
    with torch.no_grad():
        result = encoder(batch)
        outputs = encoder.node_layers(batch)[1:]
    counts = np.zeros((batch.num_nodes, 133))
    for node in range(batch.num_nodes):
        atom, chirality = batch.codes[node].tolist()
        counts[node, [atom, 120 + chirality]] += 1
        counts[node, [124 + 4, 124 + 6]] += 1  # the self-loop
        for edge in range(int(batch.rowptr[node]), int(batch.rowptr[node + 1])):
            bond, direction = batch.edge_codes[edge].tolist()
            counts[node, [124 + bond, 130 + direction]] += 1
    expected = []
    for block in (counts, *(rows.double().numpy() for rows in outputs)):
        parts = np.split(block, batch.ptr[1:-1].numpy())
        sums, means = np.array([part.sum(0) for part in parts]), np.array([part.mean(0) for part in parts])
        for columns in (np.sign(sums) * (np.sqrt(1 + np.abs(sums)) - 1), means):
            centred = columns - columns.mean(0)
            share = (133 + 8 + 8) / 3  # the mean width of a block
            expected.append(centred * np.sqrt(share / (columns.var(0, ddof=1).sum() + 1e-5)))
    assert encoder.dimensions == result.shape[1] == 2 * (133 + 2 * 8)
    np.testing.assert_allclose(result.numpy(), np.concatenate(expected, 1), atol=1e-3)


def test_balanced_vectors_are_equal_in_inference_and_train_every_weight():
    collection = molecules()
    encoder = MoleculeGin(collection.features, depth=3, width=8, layers="balanced")
    batch = GraphBatch.of(collection)
    encoder(batch).square().sum().backward()
    assert all(float(weight.grad.abs().sum()) > 0 for weight in encoder.blocks.parameters())
    encoder.eval()
    with torch.no_grad():
        expected = encoder(batch)
    np.testing.assert_allclose(embed(encoder, collection, 2), expected.numpy(), atol=1e-5)
    assert encoder.nodes(batch).shape == (batch.num_nodes, 8)


def test_wide_layers_add_the_sums_of_hidden_units():
    """The balanced part is that of an encoder with the same weights; the units are computed atom by atom."""
    collection = molecules()
    wide = MoleculeGin(collection.features, depth=2, width=8, layers="wide")
    plain = MoleculeGin(collection.features, depth=2, width=8, layers="balanced")
    plain.load_state_dict({k: v for k, v in wide.state_dict().items() if "balanced" not in k}, strict=False)
    for encoder in (wide, plain):
        reestimate_batchnorm(encoder, collection)
    batch = GraphBatch.of(collection)
    with torch.no_grad():
        result, outputs = wide(batch), plain.node_layers(batch)
        sums = []
        for block, x in zip(wide.blocks, outputs, strict=False):
            bonds = torch.cat([block.bond.weight, block.direction.weight])
            rows = x + bonds[4] + bonds[6]
            for node in range(batch.num_nodes):
                for edge in range(int(batch.rowptr[node]), int(batch.rowptr[node + 1])):
                    bond, direction = batch.edge_codes[edge].tolist()
                    rows[node] = rows[node] + x[batch.source[edge]] + bonds[bond] + bonds[6 + direction]
            units = block.first(rows).relu()
            sums.append(torch.stack([part.sum(0) for part in units.split(batch.ptr.diff().tolist())]))
        first = plain(batch)
    share = (2 * (133 + 2 * 8) + 2 * 16) / 8  # the mean width of a block
    expected = []
    for block in sums:
        columns = (1 + block.double().numpy()) ** 0.5 - 1  # no unit is negative
        expected.append((columns - columns.mean(0)) * np.sqrt(share / (columns.var(0, ddof=1).sum() + 1e-5)))
    assert wide.dimensions == result.shape[1] == 2 * (133 + 2 * 8) + 2 * 16
    np.testing.assert_allclose(result[:, -32:].numpy(), np.concatenate(expected, 1), atol=1e-3)
    scale = np.sqrt(share / ((133 + 8 + 8) / 3))
    np.testing.assert_allclose(result[:, :-32].numpy(), scale * first.numpy(), atol=1e-3)
    assert wide.nodes(batch).shape == (batch.num_nodes, 8)
