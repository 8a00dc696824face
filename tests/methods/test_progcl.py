"""ProGCL: the mixture against SciPy, the weights against the equation, and when they begin."""

import numpy as np
import pytest
import torch
from scipy import stats

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.losses import node_contrast
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.progcl import fit_beta_mixture, probability_of_first
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

MIXTURE = torch.tensor([[0.8, 0.2], [2.0, 6.0], [5.0, 1.5]], dtype=torch.float64)


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:12]


def build(graphs, **settings):
    return make_recipe("progcl", graphs, settings).build(graphs.features, 0)


def test_the_posterior_is_that_of_scipy():
    values = np.linspace(0.01, 0.99, 50)
    share, a, b = MIXTURE.numpy()
    densities = [share[c] * stats.beta.pdf(values, a[c], b[c]) for c in (0, 1)]
    expected = densities[0] / (densities[0] + densities[1])
    found = probability_of_first(torch.from_numpy(values), MIXTURE)
    torch.testing.assert_close(found, torch.as_tensor(expected))


def em_by_hand(values, second, steps):
    """Expectation-maximisation with SciPy's densities and NumPy's weighted moments."""
    share, a, b = [1 - second, second], [1.0, 2.0], [2.0, 1.0]
    for _ in range(steps):
        density = np.array([share[c] * stats.beta.pdf(values, a[c], b[c]) for c in (0, 1)])
        member = density / density.sum(0)
        for c in (0, 1):
            mean = np.average(values, weights=member[c])
            variance = np.average((values - mean) ** 2, weights=member[c])
            a[c] = mean * (mean * (1 - mean) / variance - 1)
            b[c] = a[c] * (1 - mean) / mean
            share[c] = member[c].mean()
    return [share, a, b]


def drawn(count=20_000):
    rng = np.random.default_rng(0)
    second = rng.random(count) < 0.2
    return np.where(second, rng.beta(6, 1.5, count), rng.beta(2, 5, count))


def test_the_fit_is_that_of_plain_steps():
    values = drawn(500)
    found = fit_beta_mixture(torch.from_numpy(values), 0.05, 7)
    np.testing.assert_allclose(found.numpy(), em_by_hand(values, 0.05, 7), rtol=1e-6)


def test_the_fit_finds_a_known_mixture():
    found = fit_beta_mixture(torch.from_numpy(drawn()), 0.05, 200).numpy()
    np.testing.assert_allclose(found, MIXTURE[:, [0, 1]].numpy(), rtol=0.1)


def test_the_lower_mean_comes_first():
    # A start with nearly all values in the second distribution pulls it down.
    values = torch.from_numpy(drawn(2000))
    for second in (0.05, 0.95):
        _, a, b = fit_beta_mixture(values, second, 30)
        assert a[0] / (a[0] + b[0]) < a[1] / (a[1] + b[1])


@pytest.mark.parametrize(
    "values", [torch.full((9,), 0.5), torch.zeros(3), torch.ones(3), torch.tensor([0.4])]
)
def test_equal_values_give_a_finite_fit(values):
    found = fit_beta_mixture(values, 0.05, 10)
    assert torch.isfinite(found).all()
    assert torch.isfinite(probability_of_first(torch.rand(5).double(), found)).all()


def test_without_a_fit_the_loss_is_that_of_grace(graphs):
    ours, grace = build(graphs), make_recipe("grace", graphs).build(graphs.features, 0)
    views = ours.views(GraphBatch.of(graphs), torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        ours.objective(ours.encode(views))["contrast"], grace.objective(grace.encode(views))["contrast"]
    )


def test_weights_are_the_equation(graphs):
    method = build(graphs)
    method.mixture.copy_(MIXTURE)
    cosines = torch.linspace(-0.99, 0.99, 30, dtype=torch.float64)
    s = (cosines + 1) / 2
    expected = probability_of_first(s, MIXTURE) * s
    torch.testing.assert_close(method._weigh()(cosines), expected, rtol=1e-5, atol=1e-6)
    encoded = method.encode(method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(0)))
    rows = method.head(encoded["nodes"]), method.head(encoded["copies"])
    weighted = node_contrast(*rows, temperature=0.4, weigh=method._weigh())
    torch.testing.assert_close(method.objective(encoded)["contrast"], weighted)
    assert not torch.isclose(weighted, node_contrast(*rows, temperature=0.4))


@pytest.mark.parametrize("negatives", ["batch", "graph"])
def test_the_mixture_is_fitted_after_the_first_epochs_and_then_stays(graphs, negatives):
    settings = {"fit_after": 2, "negatives": negatives}
    rows = train(graphs, "progcl", settings=settings, training=TrainSettings(epochs=4)).metrics.rows
    shares = [row["false_negatives"] for row in rows]
    assert shares[0] == 0
    assert 0 < shares[1] == shares[2] == shares[3] < 1


def test_fitting_leaves_weights_and_running_statistics_alone(graphs):
    method = build(graphs, fit_after=0)
    before = {key: value.clone() for key, value in method.state_dict().items()}
    method.begin(graphs, torch.Generator().manual_seed(0))
    changed = [key for key, value in method.state_dict().items() if not torch.equal(value, before[key])]
    assert changed == ["mixture"]
    assert method.training


def test_the_published_preset(graphs):
    assert make_recipe("progcl", graphs, preset="published").settings["fit_after"] == 400
    assert training_settings("progcl", "published", graphs.name)["epochs"] == 3000


@pytest.mark.parametrize("settings", [{"fit_after": -1}, {"fit_steps": 0}, {"false_share": 1.0}])
def test_values_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        build(graphs, **settings)
