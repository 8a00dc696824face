"""Trained encoders for PyG and torch.export, and embeddings for AnnData, FAISS and hnswlib."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from graphsc import open_collection
from graphsc.core.errors import ConfigError, DataError
from graphsc.training import (
    TrainSettings,
    model_of,
    read_vectors,
    to_anndata,
    train,
    write_embeddings,
    write_vectors,
)

EXPORTED = ("gin", "gine", "gcn", "gat", "graphsage")


@pytest.fixture(scope="module")
def mutag():
    return open_collection("mutag")


def trained(graphs, method="graphcl", **more):
    return train(graphs, method, training=TrainSettings(epochs=1), **more).model


def pyg(graphs, rows=slice(None)):
    return Batch.from_data_list(graphs.to_pyg()[rows])


@pytest.mark.parametrize("method", ["graphcl", "graphsc-plus", "untrained"])
def test_a_module_gives_the_embeddings_of_its_model(mutag, method):
    model = trained(mutag, method)
    module = model.to_pyg_module()
    assert isinstance(module, nn.Module)
    rows = np.concatenate([module(batch).detach().numpy() for batch in DataLoader(mutag.to_pyg(), 50)])
    np.testing.assert_allclose(rows, model.embed(mutag), rtol=1e-4, atol=1e-3)
    assert module.dimensions == rows.shape[1]
    assert module(mutag.to_pyg()[3]).shape == (1, rows.shape[1])


@pytest.mark.parametrize("encoder", [*EXPORTED, "gps"])
def test_every_encoder_is_a_module_without_heads(mutag, encoder):
    model = trained(mutag, "graphsc", encoder=encoder)
    module = model.to_pyg_module()
    assert {name.split(".")[1] for name in module.state_dict()} == {"encoder"}
    rows = module(pyg(mutag, slice(40))).detach().numpy()
    np.testing.assert_allclose(rows, model.embed(mutag[:40]), rtol=1e-3, atol=1e-2)


def test_a_module_is_trained_in_an_own_loop_and_the_model_stays(mutag):
    model = trained(mutag)
    before = model.embed(mutag)
    classifier = nn.Sequential(model.to_pyg_module(), nn.Linear(96, 2)).train()
    optimiser = torch.optim.Adam(classifier.parameters(), 1e-3)
    losses = []
    for _ in range(8):
        batch = pyg(mutag)
        loss = nn.functional.cross_entropy(classifier(batch), (batch.y > 0).long())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    np.testing.assert_array_equal(model.embed(mutag), before)


def test_other_features_are_refused_by_a_module(mutag):
    module = trained(mutag).to_pyg_module()
    batch = pyg(mutag, slice(4))
    batch.x = batch.x + 50
    with pytest.raises(DataError, match="does not know"):
        module(batch)


def test_a_method_without_weights_has_no_module(mutag):
    with pytest.raises(ConfigError, match="wl has no encoder"):
        trained(mutag, "wl").to_pyg_module()


@pytest.mark.parametrize("encoder", EXPORTED)
def test_an_exported_encoder_gives_the_same_rows_for_batches_of_other_sizes(mutag, encoder):
    model = trained(mutag, encoder=encoder)
    module = model.to_pyg_module()
    program = module.export(pyg(mutag, slice(8))).module()
    for rows in (slice(8, 60), slice(60, 63)):
        batch = pyg(mutag, rows)
        torch.testing.assert_close(program(**module.tensors(batch)), module(batch), rtol=1e-4, atol=1e-3)


def test_the_molecule_encoder_is_exported_too():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CC=O", "c1ccccc1", "CC(=O)O", "CCN", "C#N"] * 3
    graphs = open_collection(smiles)
    small = {"encoder.width": 8, "encoder.depth": 2}
    model = trained(graphs, encoder="molecule-gin", settings=small)
    module = model.to_pyg_module()
    program = module.export(pyg(graphs, slice(4))).module()
    batch = pyg(graphs, slice(4, 18))
    torch.testing.assert_close(program(**module.tensors(batch)), module(batch), rtol=1e-4, atol=1e-4)


def test_an_encoder_that_torch_cannot_export_is_named(mutag):
    module = trained(mutag, encoder="gps").to_pyg_module()
    with pytest.raises(ConfigError, match="PyTorch cannot export the encoder Gps"):
        module.export(pyg(mutag, slice(8)))


def test_an_exported_file_runs_without_this_package(mutag, tmp_path):
    model = trained(mutag)
    module = model.to_pyg_module()
    torch.export.save(module.export(pyg(mutag, slice(8))), tmp_path / "gin.pt2")
    batch = pyg(mutag, slice(8, 20))
    torch.save(module.tensors(batch), tmp_path / "inputs.pt")
    code = (
        "import sys, torch\n"
        "program = torch.export.load('gin.pt2').module()\n"
        "torch.save(program(**torch.load('inputs.pt')), 'rows.pt')\n"
        "assert not any(name.startswith('graphsc') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    expected = module(batch).detach()
    torch.testing.assert_close(torch.load(tmp_path / "rows.pt").detach(), expected, rtol=1e-4, atol=1e-3)


def test_a_loaded_model_is_exported_as_the_trained_one(mutag, tmp_path):
    train(mutag, "graphcl", training=TrainSettings(epochs=1), out=tmp_path)
    model = model_of(tmp_path, "cpu")
    rows = model.to_pyg_module()(pyg(mutag)).detach().numpy()
    np.testing.assert_allclose(rows, model.embed(mutag), rtol=1e-4, atol=1e-3)


def test_anndata_has_ids_and_classes(mutag, tmp_path):
    anndata = pytest.importorskip("anndata")
    rows = np.arange(188 * 3, dtype=np.float32).reshape(188, 3)
    table = to_anndata(rows, mutag)
    np.testing.assert_array_equal(table.X, rows)
    assert table.obs_names.tolist() == [str(graph_id) for graph_id in mutag.ids]
    (task,) = mutag.tasks
    names = mutag.classes.get(task)
    expected = mutag.labels[:, 0].tolist()
    found = table.obs[task].tolist()
    assert found == ([names[int(label)] for label in expected] if names else expected)
    table.write_h5ad(tmp_path / "m.h5ad")
    np.testing.assert_array_equal(anndata.read_h5ad(tmp_path / "m.h5ad").X, rows)


def test_anndata_of_missing_labels_and_numbers():
    pytest.importorskip("anndata")
    from torch_geometric.data import Data

    labels = ([1.5, 2.0], [float("nan"), 3.0])
    graphs = open_collection([Data(x=torch.ones(2, 1), y=torch.tensor([label])) for label in labels])
    table = to_anndata(np.zeros((2, 4), np.float32), graphs)
    assert np.isnan(table.obs["task0"].iloc[1])
    assert table.obs["task1"].tolist() == [2.0, 3.0]
    with pytest.raises(DataError, match=r"shape \(3, 4\) for 2 graphs"):
        to_anndata(np.zeros((3, 4), np.float32), graphs)


@pytest.fixture
def vectors():
    rows = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    return rows, [f"graph {k}" for k in range(60)]


def test_a_folder_of_vectors_is_read_back(vectors, tmp_path):
    rows, ids = vectors
    write_vectors(tmp_path / "v", rows, ids)
    again, names = read_vectors(tmp_path / "v")
    np.testing.assert_array_equal(again, rows)
    assert names == ids
    assert isinstance(again, np.memmap)
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == ["ids.json", "vectors.npy"]
    for content in ("{}", '{"ids": 3}', "no JSON"):
        (tmp_path / "v" / "ids.json").write_text(content)
        with pytest.raises(DataError, match="not a folder of vectors"):
            read_vectors(tmp_path / "v")


def test_faiss_finds_the_nearest_rows(vectors, tmp_path):
    faiss = pytest.importorskip("faiss")
    rows, ids = vectors
    write_vectors(tmp_path, rows, ids, index="faiss")
    _, found = faiss.read_index(str(tmp_path / "index.faiss")).search(rows[:5], 3)
    distances = ((rows[:5, None] - rows[None]) ** 2).sum(-1)
    np.testing.assert_array_equal(found, np.argsort(distances, axis=1)[:, :3])


def test_hnswlib_finds_the_nearest_rows(vectors, tmp_path):
    hnswlib = pytest.importorskip("hnswlib")
    rows, ids = vectors
    write_vectors(tmp_path, rows, ids, index="hnswlib")
    index = hnswlib.Index(space="l2", dim=8)
    index.load_index(str(tmp_path / "index.hnsw"))
    found, _ = index.knn_query(rows[:5], k=1)
    assert found[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_an_index_of_earlier_vectors_does_not_stay(vectors, tmp_path):
    pytest.importorskip("faiss")
    rows, ids = vectors
    write_vectors(tmp_path, rows, ids, index="faiss")
    write_vectors(tmp_path, rows[:5], ids[:5])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ids.json", "vectors.npy"]


def test_pandas_reads_a_table_of_embeddings(mutag, tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    rows = np.arange(188 * 3, dtype=np.float32).reshape(188, 3)
    for ending, read in ((".parquet", pandas.read_parquet), (".csv", pandas.read_csv)):
        write_embeddings(str(tmp_path / f"m{ending}"), rows, mutag.ids)
        table = read(tmp_path / f"m{ending}").set_index("id")
        assert table.index.tolist() == list(mutag.ids)
        assert table.columns.tolist() == ["v0", "v1", "v2"]
        np.testing.assert_array_equal(table.to_numpy(), rows)


def test_an_unknown_index_is_refused(vectors, tmp_path):
    with pytest.raises(ConfigError, match="unknown index 'annoy'"):
        write_vectors(tmp_path, *vectors, index="annoy")
