"""SimGRACE: the noise, the perturbed copy, and the gradients that skip it."""

import copy
import math

import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.simgrace import perturb


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:12")


def build(collection, **settings):
    preset = settings.pop("preset", "default")
    return make_recipe("simgrace", collection, settings, preset=preset).build(collection.features, 0)


def encoded_by(method, collection, seed=0):
    torch.manual_seed(seed)
    views = method.views(GraphBatch.of(collection), torch.Generator().manual_seed(seed))
    return method.encode(views)


def test_noise_scales_with_the_tensors_deviation():
    torch.manual_seed(0)
    wide, narrow = 5.0 * torch.randn(400, 500) + 3.0, 0.01 * torch.rand(200_000)
    result = perturb({"wide": wide, "narrow": narrow}, eta=0.7)
    for name, value, spread in (("wide", wide, 5.0), ("narrow", narrow, 0.01 / 12**0.5)):
        noise = (result[name] - value) / (0.7 * spread)
        # 200,000 draws: the mean is known to 1/447, the deviation to 1/632; five times that is allowed.
        assert noise.mean().abs() < 5 / 447
        assert (noise.std() - 1).abs() < 5 / 632
        assert (noise.abs() < 1).double().mean().item() == pytest.approx(math.erf(0.5**0.5), abs=0.006)


def test_tensors_without_spread_get_no_noise():
    values = {"bias": torch.zeros(32), "scale": torch.ones(32), "single": torch.tensor([0.3])}
    result = perturb(values, eta=10.0)
    for name, value in values.items():
        assert torch.equal(result[name], value)


def test_noise_is_new_each_time():
    value = {"w": torch.randn(8, 8)}
    assert not torch.equal(perturb(value, 1.0)["w"], perturb(value, 1.0)["w"])


def test_perturbed_vectors_are_those_of_a_copy_with_noise_added(graphs):
    method = build(graphs, eta=0.5)
    twin = copy.deepcopy(method.encoder)
    torch.manual_seed(4)
    with torch.no_grad():
        for parameter in twin.parameters():
            noise = torch.randn(parameter.shape)
            deviation = (parameter - parameter.mean()).square().sum().div(parameter.numel() - 1).sqrt()
            parameter += 0.5 * deviation * noise
    encoded = encoded_by(method, graphs, seed=4)
    torch.testing.assert_close(encoded["positive"], twin(GraphBatch.of(graphs)), rtol=1e-4, atol=1e-4)


def test_without_noise_both_views_are_the_same(graphs):
    encoded = encoded_by(build(graphs, eta=0.0), graphs)
    torch.testing.assert_close(encoded["anchor"], encoded["positive"])


def test_the_copy_leaves_the_encoder_unchanged(graphs):
    """Weights stay, and BatchNorm's statistics are those of one clean pass."""
    method = build(graphs)
    twin = copy.deepcopy(method.encoder)
    twin(GraphBatch.of(graphs))
    encoded_by(method, graphs)
    for (name, own), other in zip(
        method.encoder.state_dict().items(), twin.state_dict().values(), strict=True
    ):
        assert torch.equal(own, other), name


@pytest.mark.parametrize("rows", ["encoder", "perturbed"])
def test_loss_equals_the_equation_written_out(graphs, rows):
    method = build(graphs, temperature=0.5, rows=rows)
    encoded = encoded_by(method, graphs)
    loss = method.objective(encoded)["contrast"]
    with torch.no_grad():
        # One head for both, and it is not perturbed.
        own, other = (method.head(encoded[name]).double() for name in ("anchor", "positive"))
    first, second = (own, other) if rows == "encoder" else (other, own)
    total = 0.0
    for i in range(len(first)):
        scores = [float(torch.cosine_similarity(first[i], row, 0)) / 0.5 for row in second]
        total -= scores[i] - math.log(sum(math.exp(s) for j, s in enumerate(scores) if j != i))
    assert loss.item() == pytest.approx(total / len(first), abs=1e-4)


def test_no_gradient_comes_through_the_copy(graphs):
    """The gradient is that of a loss whose perturbed side is a constant."""
    method = build(graphs)
    encoded = encoded_by(method, graphs)
    assert not encoded["positive"].requires_grad
    weights = list(method.parameters())
    result = torch.autograd.grad(method.objective(encoded)["contrast"], weights, retain_graph=True)
    constant = method.head(encoded["positive"]).detach()
    u = torch.nn.functional.normalize(method.head(encoded["anchor"]))
    scores = u @ torch.nn.functional.normalize(constant).T / 0.2
    others = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), -torch.inf)
    expected = torch.autograd.grad((others.logsumexp(1) - scores.diagonal()).mean(), weights)
    for one, two in zip(result, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-5)


def test_published_encoder_has_five_layers(graphs):
    method = build(graphs, preset="published")
    assert method.encoder.dimensions == 5 * 32
    assert (method.rows, method.batch_norm_embedding) == ("perturbed", "running")
    result = training_settings("simgrace", "published", "nci1")
    assert result == {"learning_rate": 0.01, "epochs": 20, "batch_size": 128}


@pytest.mark.parametrize(
    ("settings", "message"), [({"eta": -1.0}, "eta must not be"), ({"temperature": 0.0}, "temperature must")]
)
def test_settings_out_of_range_are_refused(graphs, settings, message):
    with pytest.raises(ConfigError, match=message):
        build(graphs, **settings)
