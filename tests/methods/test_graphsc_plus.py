from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from graphsc import open_collection
from graphsc.core.errors import ConfigError, DataError
from graphsc.data.batch import GraphBatch
from graphsc.data.environments import environment_counts
from graphsc.data.molecules.descriptors import DESCRIPTORS
from graphsc.losses import ordered_contrast
from graphsc.methods import METHODS, make_recipe
from graphsc.methods.graphsc_plus import TargetScale
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

SMALL = {"encoder.depth": 2, "encoder.width": 8}


@pytest.fixture
def motifs():
    return open_collection("motifs:24")


def build(name, collection, **settings):
    return make_recipe(name, collection, SMALL | settings).build(collection.features, 0)


def test_its_terms_are_those_of_graphsc_and_the_contrast(motifs):
    masked = {"lambda_masked": 1.0, "lambda_factor": 0.01}
    plus, plain = build("graphsc-plus", motifs, **masked), build("graphsc", motifs, **masked)
    plain.load_state_dict({key: plus.state_dict()[key] for key in plain.state_dict()})
    batch = GraphBatch.of(motifs)
    encoded = plus.encode(plus.views(batch, torch.Generator().manual_seed(1)))
    result, expected = plus.objective(encoded), plain.objective(encoded)
    contrast = result.pop("contrast")
    assert {key: float(value) for key, value in result.items()} == pytest.approx(
        {key: float(value) for key, value in expected.items()}
    )
    heads = [plus.fourth_head(encoded[name]) for name in ("anchor", "positive", "negative")]
    assert float(contrast) == pytest.approx(float(ordered_contrast(*heads, temperature=0.2)))


def test_a_contrast_without_weight_has_no_head(motifs):
    method = build("graphsc-plus", motifs, lambda_contrast=0.0)
    assert method.fourth_head is None
    encoded = method.encode(method.views(GraphBatch.of(motifs), torch.Generator().manual_seed(1)))
    assert "contrast" not in method.objective(encoded)


@pytest.mark.parametrize("settings", [{"lambda_contrast": -1.0}, {"temperature": 0.0}])
def test_settings_out_of_range_are_refused(motifs, settings):
    with pytest.raises(ConfigError, match="must"):
        build("graphsc-plus", motifs, **settings)


def test_untrained_plus_equals_graphsc_plus_without_training(motifs):
    none = TrainSettings(epochs=0)
    one = train(motifs, "untrained-plus", settings=SMALL, training=none).model
    other = train(motifs, "graphsc-plus", settings=SMALL, training=none).model
    assert one.dimensions == other.dimensions == motifs.features.width + 16
    np.testing.assert_allclose(one.embed(motifs), other.embed(motifs), atol=1e-6)


def test_it_names_no_paper():
    assert METHODS.get("graphsc-plus").paper == "-"


def on_molecules(collection, **settings):
    small = {"encoder.depth": 2, "encoder.width": 8, "neck": 12, "environment_bits": 64,
             "contrast_share": 1.0, "lambda_environments": 1.0}  # fmt: skip
    recipe = make_recipe(
        "graphsc-plus", collection, small | settings, preset="molecules", encoder="molecule-gin"
    )
    return recipe.build(collection.features, 0)


def test_on_molecules_environments_are_read_off_the_graphs_own_vectors(made_up_molecules):
    method = on_molecules(made_up_molecules, lambda_environments=0.5)
    batch = GraphBatch.of(made_up_molecules)
    encoded = method.encode(method.views(batch, torch.Generator().manual_seed(1)))
    losses = method.objective(encoded)
    assert set(losses) == {"self", "absolute", "contrast", "environments"}
    present = environment_counts(batch, 2, 64) > 0
    logits = method.environments(encoded["vectors"]).double()
    likelihood = torch.where(present, torch.sigmoid(logits), torch.sigmoid(-logits)).log()
    expected = -0.5 * float(likelihood.sum(1).mean()) / 100
    assert float(losses["environments"]) == pytest.approx(expected, rel=1e-4)
    assert encoded["anchor"].shape == (len(made_up_molecules), 12)


def test_counts_of_environments_are_read_in_logarithms(made_up_molecules):
    method = on_molecules(made_up_molecules, environment_target="counts")
    batch = GraphBatch.of(made_up_molecules)
    encoded = method.encode(method.views(batch, torch.Generator().manual_seed(1)))
    error = method.environments(encoded["vectors"]) - (1 + environment_counts(batch, 2, 64)).log()
    expected = float(error.square().sum(1).mean()) / 100
    assert float(method.objective(encoded)["environments"]) == pytest.approx(expected, rel=1e-4)


def test_without_contrast_only_the_clean_molecules_are_encoded(made_up_molecules):
    none = {"lambda_self": 0.0, "lambda_contrast": 0.0, "lambda_absolute": 0.0}
    method = on_molecules(made_up_molecules, **none)
    views = method.views(GraphBatch.of(made_up_molecules), torch.Generator().manual_seed(1))
    assert set(views) == {"anchor"}
    encoded = method.encode(views)
    assert set(method.objective(encoded)) == {"environments"}
    with torch.no_grad():
        pretext = method.pretext(encoded)
        logits = method.environments(encoded["vectors"]).numpy().ravel()
    expected = roc_auc_score((encoded["environments"] > 0).numpy().ravel(), logits)
    assert pretext.score == pytest.approx(expected, abs=1e-6)


def test_on_molecules_vectors_are_the_encoders(made_up_molecules):
    method = on_molecules(made_up_molecules).eval()
    batch = GraphBatch.of(made_up_molecules)
    assert method.embeds_by_encoder
    assert torch.equal(method.embed(batch), method.encoder(batch))
    assert method.dimensions(made_up_molecules.features) == 2 * (144 + 2 * 8)


@pytest.mark.parametrize(
    "settings", [{"lambda_environments": -1.0}, {"environment_bits": 0}, {"contrast_share": 0.0}]
)
def test_wrong_settings_of_molecules_are_refused(made_up_molecules, settings):
    with pytest.raises(ConfigError, match=r"must not be negative|at least one bit|above 0"):
        on_molecules(made_up_molecules, **settings)


def test_a_share_of_the_molecules_has_views_and_all_have_environments(made_up_molecules):
    method = on_molecules(made_up_molecules, contrast_share=0.25)
    batch, total = GraphBatch.of(made_up_molecules), len(made_up_molecules)
    views = method.views(batch, torch.Generator().manual_seed(1))
    some = round(total / 4)
    assert [views[name].num_graphs for name in ("anchor", "positive", "negative")] == [total, some, some]
    # The views are those of the first molecules.
    whole = on_molecules(made_up_molecules[:some])
    expected = whole.views(GraphBatch.of(made_up_molecules[:some]), torch.Generator().manual_seed(1))
    assert torch.equal(views["positive"].codes, expected["positive"].codes)
    encoded = method.encode(views)
    rows = {name: len(value) for name, value in encoded.items()}
    assert rows == {
        "anchor": some, "positive": some, "negative": some, "vectors": total, "environments": total
    }  # fmt: skip
    assert set(method.objective(encoded)) == {"self", "absolute", "contrast", "environments"}


def described(collection, values):
    return replace(collection, descriptors=values)


def test_descriptors_are_read_off_standardised(made_up_molecules):
    """The error against columns standardised by NumPy; a missing value costs nothing."""
    rng = np.random.default_rng(3)
    values = rng.normal(2, 3, (len(made_up_molecules), len(DESCRIPTORS))).astype(np.float32)
    values[0, 0], values[:, 1] = np.nan, 7.0
    method = on_molecules(made_up_molecules, lambda_descriptors=0.5)
    batch = GraphBatch.of(described(made_up_molecules, values))
    encoded = method.encode(method.views(batch, torch.Generator().manual_seed(1)))
    loss = float(method.objective(encoded)["descriptors"].detach())
    scaled = np.clip((values - np.nanmean(values, 0)) / np.nanstd(values, 0).clip(1e-9), -5, 5)
    read = method.descriptors(encoded["vectors"]).detach().numpy()
    expected = 0.5 * np.nan_to_num(read - scaled).__pow__(2).mean()
    assert loss == pytest.approx(float(expected), rel=1e-4)


def test_targets_are_scaled_by_all_rows_seen_in_training():
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.gamma(2.0, 3.0, (90, 3)).astype(np.float32))
    rows[5, 1] = torch.nan
    scale = TargetScale(3)
    for part in rows.split(40):
        scale(part)
    scale.eval()
    values = rows.double().numpy()
    expected = np.clip((values - np.nanmean(values, 0)) / np.nanstd(values, 0), -5, 5)
    np.testing.assert_allclose(scale(rows).numpy(), expected, atol=1e-5)
    assert int(scale.count[0]) == 90  # evaluation counts no rows


def test_molecules_without_descriptors_are_refused_where_they_are_a_target(made_up_molecules):
    method = on_molecules(made_up_molecules, lambda_descriptors=1.0)
    with pytest.raises(DataError, match="these graphs have none"):
        method.encode(method.views(GraphBatch.of(made_up_molecules), torch.Generator().manual_seed(1)))
