import numpy as np
import pytest
import torch

from graphsc import open_collection
from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.losses import ordered_contrast
from graphsc.methods import METHODS, make_recipe
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
