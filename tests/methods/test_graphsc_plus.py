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


def made(name, collection, **settings):
    return make_recipe(name, collection, SMALL | settings).build(collection.features, 0)


def test_its_terms_are_those_of_graphsc_and_the_contrast(motifs):
    masked = {"lambda_masked": 1.0, "lambda_factor": 0.01}
    plus, plain = made("graphsc-plus", motifs, **masked), made("graphsc", motifs, **masked)
    plain.load_state_dict({key: plus.state_dict()[key] for key in plain.state_dict()})
    batch = GraphBatch.of(motifs)
    encoded = plus.encode(plus.views(batch, torch.Generator().manual_seed(1)))
    found, expected = plus.objective(encoded), plain.objective(encoded)
    contrast = found.pop("contrast")
    assert {key: float(value) for key, value in found.items()} == pytest.approx(
        {key: float(value) for key, value in expected.items()}
    )
    heads = [plus.fourth_head(encoded[name]) for name in ("anchor", "positive", "negative")]
    assert float(contrast) == pytest.approx(float(ordered_contrast(*heads, temperature=0.2)))


def test_without_a_weight_there_is_no_contrast_and_no_head(motifs):
    method = made("graphsc-plus", motifs, lambda_contrast=0.0)
    assert method.fourth_head is None
    encoded = method.encode(method.views(GraphBatch.of(motifs), torch.Generator().manual_seed(1)))
    assert "contrast" not in method.objective(encoded)


@pytest.mark.parametrize("settings", [{"lambda_contrast": -1.0}, {"temperature": 0.0}])
def test_values_out_of_range_are_refused(motifs, settings):
    with pytest.raises(ConfigError, match="must"):
        made("graphsc-plus", motifs, **settings)


def test_untrained_plus_is_its_first_embedding(motifs):
    none = TrainSettings(epochs=0)
    one = train(motifs, "untrained-plus", settings=SMALL, training=none).model
    other = train(motifs, "graphsc-plus", settings=SMALL, training=none).model
    assert one.dimensions == other.dimensions == motifs.features.width + 16
    np.testing.assert_allclose(one.embed(motifs), other.embed(motifs), atol=1e-6)


def test_it_does_not_borrow_the_papers_name():
    assert METHODS.get("graphsc-plus").paper == "-"
