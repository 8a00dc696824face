"""GraphEmbedder as a scikit-learn estimator."""

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import estimator_checks

from graphsc import GraphEmbedder, open_collection
from graphsc.core.errors import ConfigError, DataError, GraphscWarning

# The checks of scikit-learn that make sense for graphs; the others pass a matrix of floats to `fit`.
CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_mixin_order",
    "check_valid_tag_types",
]


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:60")


def quick(**changes):
    return GraphEmbedder(**{"epochs": 1, "batch_size": 32, **changes})


@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learn_check(name):
    getattr(estimator_checks, name)("GraphEmbedder", GraphEmbedder())


def test_grid_search_over_epochs_and_c(graphs):
    pipeline = make_pipeline(quick(), SVC())
    grid = {"graphembedder__epochs": [0, 1], "svc__C": [1, 10]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(graphs, graphs.labels[:, 0])
    assert set(search.best_params_) == set(grid)
    assert search.predict(graphs[:7]).shape == (7,)


def test_cross_val_predict_slices_the_collection(graphs):
    labels = graphs.labels[:, 0]
    result = cross_val_predict(make_pipeline(quick(), SVC()), graphs, labels, cv=3)
    assert result.shape == labels.shape
    assert set(result) <= set(labels)


def test_unseen_graphs_and_any_batch_composition(graphs):
    embedder = quick().fit(graphs[:40])
    rows = embedder.transform(graphs[40:])
    assert rows.shape == (20, embedder.n_features_out_) == (20, 96)
    one_by_one = np.concatenate([embedder.transform(graphs[i]) for i in range(40, 60)])
    np.testing.assert_allclose(rows, one_by_one, rtol=1e-4, atol=1e-4)


def test_same_random_state_same_vectors(graphs):
    one, two = (quick(random_state=7).fit_transform(graphs) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, quick(random_state=8).fit_transform(graphs))
    state = np.random.RandomState(0)
    assert not np.allclose(
        quick(random_state=state).fit_transform(graphs), quick(random_state=state).fit_transform(graphs)
    )


def test_networkx_pyg_and_path_are_taken(tmp_path):
    networkx = pytest.importorskip("networkx")
    from torch_geometric.data import Data

    graphs = [networkx.cycle_graph(size) for size in range(3, 15)]
    assert quick().fit_transform(graphs).shape == (12, 96)
    edge_index = torch.tensor([[0, 1], [1, 0]])
    assert quick().fit_transform([Data(edge_index=edge_index, num_nodes=2)] * 9).shape == (9, 96)
    collection = open_collection(graphs)
    collection.save(tmp_path / "c.safetensors")
    assert quick().fit_transform(str(tmp_path / "c.safetensors")).shape == (12, 96)


def test_y_is_never_read(graphs):
    class Poison:
        def __getattribute__(self, name):
            raise AssertionError(f"y was read: {name}")

    np.testing.assert_array_equal(
        quick().fit(graphs, Poison()).transform(graphs), quick().fit(graphs).transform(graphs)
    )


def test_save_and_load(graphs, tmp_path):
    embedder = quick().fit(graphs)
    embedder.save(tmp_path / "m.safetensors")
    again = GraphEmbedder.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(graphs), embedder.transform(graphs))
    assert again.get_feature_names_out().tolist() == embedder.get_feature_names_out().tolist()


def test_joblib_and_clone(graphs, tmp_path):
    embedder = quick().fit(graphs)
    joblib.dump(embedder, tmp_path / "e.joblib")
    np.testing.assert_array_equal(
        joblib.load(tmp_path / "e.joblib").transform(graphs), embedder.transform(graphs)
    )
    assert not hasattr(clone(embedder), "model_")


def test_transform_before_fit_raises_not_fitted_error(graphs):
    with pytest.raises(NotFittedError):
        quick().transform(graphs)


def test_wrong_method_is_named(graphs):
    with pytest.raises(ConfigError, match="did you mean 'graphsc'"):
        quick(method="graphs").fit(graphs)


@pytest.mark.parametrize(("method", "width"), [("untrained", 96), ("raw", None)])
def test_methods_that_do_not_train(graphs, method, width):
    rows = quick(method=method).fit_transform(graphs)
    assert rows.shape == (60, width or graphs.features.width)


def test_metrics_have_a_row_per_epoch(graphs):
    assert [row["epoch"] for row in quick(epochs=3).fit(graphs).metrics_] == [1, 2, 3]


SMILES = ["CCO", "CCN", "c1ccccc1", "c1ccncc1", "CC(=O)O", "CC#N", "OCCO", "C1CCCCC1", "CCCl", "CCBr"]


def test_smiles_strings_in_rows_out():
    pytest.importorskip("rdkit")
    embedder = quick(batch_size=5).fit(SMILES)
    rows = embedder.transform(SMILES)
    assert rows.shape == (10, 96)
    np.testing.assert_array_equal(rows, quick(batch_size=5).fit_transform(SMILES))
    np.testing.assert_allclose(embedder.transform(["CCO"]), rows[:1], rtol=1e-4, atol=1e-4)


INVALID = [*SMILES[:3], "not a molecule", None, *SMILES[3:]]


def test_a_string_that_is_no_molecule_has_a_row_of_nan():
    pytest.importorskip("rdkit")
    embedder = quick(batch_size=5)
    for embed in (embedder.fit_transform, embedder.transform):
        with pytest.warns(GraphscWarning, match="2 of 12 inputs are no molecule, the first at 3"):
            rows = embed(INVALID)
        assert rows.shape == (12, 96)
        assert np.isnan(rows).all(1).tolist() == [place in (3, 4) for place in range(12)]
        np.testing.assert_allclose(
            rows[[0, 11]], embedder.transform([SMILES[0], SMILES[-1]]), rtol=1e-3, atol=1e-3
        )


def test_inputs_that_are_no_molecule_are_dropped_or_refused_if_asked():
    pytest.importorskip("rdkit")
    embedder = quick(batch_size=5).fit(SMILES)
    with pytest.warns(GraphscWarning, match="2 of 12 inputs are no molecule"):
        rows = embedder.transform(INVALID, on_invalid="drop")
    np.testing.assert_array_equal(rows, embedder.transform(SMILES))
    for strict in (
        lambda: embedder.transform(INVALID, on_invalid="raise"),
        lambda: quick(on_invalid="raise").fit(INVALID),
        lambda: quick(on_invalid="raise").fit_transform(INVALID),
    ):
        with pytest.raises(DataError, match="2 of 12 inputs are no molecule, the first at 3"):
            strict()
    with pytest.raises(ConfigError, match="use raise, nan or drop"):
        embedder.transform(SMILES, on_invalid="ignore")


def test_from_pretrained_by_path_and_by_name(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    from graphsc.core.errors import NotFoundError
    from graphsc.training.model_io import pack
    from graphsc.training.pretrain import pretrain

    small = {"encoder.depth": 2, "encoder.width": 16}
    pretrain(SMILES * 3, settings=small, epochs=1, held_out=2, out=tmp_path / "run")
    pack(tmp_path / "run", tmp_path / "mine.safetensors")
    monkeypatch.setenv("GRAPHSC_MODELS", str(tmp_path))
    expected = GraphEmbedder.from_pretrained(tmp_path / "run").transform(SMILES)
    assert expected.shape == (10, 16)
    for source in ("mine", tmp_path / "mine.safetensors"):
        rows = GraphEmbedder.from_pretrained(source).transform(SMILES)
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-3 * np.abs(expected).max())
    with pytest.raises(NotFoundError, match=r"valid: .*mine"):
        GraphEmbedder.from_pretrained("yours")


def test_a_grid_search_over_arrays_of_numpy():
    """Settings that NumPy's numbers give are those that Python's give, also in the saved model."""
    graphs = open_collection("motifs:24")
    labels = graphs.labels[:, 0].astype(int)
    pipeline = make_pipeline(
        GraphEmbedder("graphcl", settings={"encoder.width": 4, "encoder.depth": 1}), SVC()
    )
    grid = {
        "graphembedder__epochs": np.array([1, 2]),
        "graphembedder__batch_size": np.array([8], np.int32),
        "graphembedder__learning_rate": np.array([0.01], np.float32),
        "graphembedder__settings": [{"encoder.width": np.int64(4), "temperature": np.float32(0.5)}],
    }
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(graphs, labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_numbers_of_numpy_give_the_same_model(tmp_path):
    graphs = open_collection("motifs:12")
    plain = GraphEmbedder("graphcl", epochs=1, batch_size=8, settings={"encoder.width": 4}).fit(graphs)
    numpy = GraphEmbedder(
        "graphcl", epochs=np.int64(1), batch_size=np.int16(8), settings={"encoder.width": np.int64(4)}
    ).fit(graphs)
    for name, embedder in (("plain", plain), ("numpy", numpy)):
        embedder.save(tmp_path / name)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "numpy").read_bytes()


def test_a_notebook_shows_the_settings():
    shown = GraphEmbedder("graphcl", epochs=7, features="degree:5")._repr_html_()
    for text in ("GraphEmbedder", "graphcl", "epochs", "7", "degree:5", "batch_size", "128"):
        assert text in shown, text
