"""GraphSC: the terms of each variant, their weights and gradients, and its presets."""

import networkx
import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe
from graphsc.methods.graphsc import PAPER_LITERAL, GraphSC
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

TERMS = {
    "graphsc": {"self", "masked", "factor", "absolute"},
    "graphsc-mse": {"self", "masked", "factor", "absolute"},
    "graphsc-rd": {"self", "masked", "factor", "absolute"},
    "graphsc-nm": {"self", "factor", "absolute"},
    "graphsc-nb": {"self", "masked", "factor"},
    "graphsc-rdt": {"self"},
}


@pytest.fixture(scope="module")
def mutag():
    return open_collection("mutag")


def losses_of(collection, name="graphsc", seed=0, **settings):
    recipe = make_recipe(name, collection, settings)
    method = recipe.build(collection.features, seed)
    batch = GraphBatch.gather(collection, np.arange(128))
    encoded = method.encode(method.views(batch, torch.Generator().manual_seed(seed)))
    return method, encoded, method.objective(encoded)


@pytest.mark.parametrize("name", TERMS)
def test_variants_have_their_terms(mutag, name):
    assert set(losses_of(mutag, name)[2]) == TERMS[name]


def test_the_mean_square_of_graphsc_mse_moves_the_encoder(mutag):
    """A term with hardly any gradient would make the variant equal to the ablation without the term."""
    method, _, losses = losses_of(mutag, "graphsc-mse")

    def gradient(name):
        parameters = list(method.encoder.parameters())
        parts = torch.autograd.grad(losses[name], parameters, retain_graph=True)
        return float(torch.cat([part.flatten() for part in parts]).norm())

    assert gradient("absolute") > 0.2 * gradient("self")


def test_without_masked_contrast_factors_stay_independent_unless_told_otherwise(mutag):
    assert set(losses_of(mutag, "graphsc-nm", lambda_factor=0.0)[2]) == {"self", "absolute"}


def test_total_equals_the_equation_written_out(mutag):
    """Eq. 8 to 21 with loops over graphs and factors, default reading."""
    method, encoded, losses = losses_of(mutag, lambda_masked=0.7, lambda_factor=0.3, lambda_absolute=0.2)

    def unit(v):
        return v / v.norm()

    with torch.no_grad():
        heads = [method.first_head, method.second_head, method.third_head]
        anchor, positive, negative = (encoded[name] for name in ("anchor", "positive", "negative"))
        size, width, n = len(anchor), anchor.shape[1], 4
        part = width // n
        relative = masked = 0.0
        for i in range(size):
            y, yp, yn = (unit(heads[0](h[i])) for h in (anchor, positive, negative))
            relative += max(float((y - yp).square().sum() - (y - yn).square().sum() + 0.2), 0) / size
            q = unit(heads[1](y))
            hinges, scores = [], []
            for m in range(n):
                mask = torch.ones(width)
                mask[m * part : (m + 1) * part] = 0
                qp, qn = unit(heads[1](yp * mask)), unit(heads[1](yn * mask))
                hinges.append(max(float((q - qp).square().sum() - (q - qn).square().sum() + 0.2), 0))
                scores.append(float(q @ (qp - qn)) / 0.1)
            weights = (1 - torch.softmax(torch.tensor(scores), 0)) / (n - 1)
            masked += sum(float(w) * hinge for w, hinge in zip(weights, hinges, strict=True)) / size
        centre = torch.eye(size) - 1 / size
        dependence = 0.0
        for h in (positive, negative):
            y = heads[0](h)
            kernels = []
            for j in range(n):
                squares = torch.cdist(
                    y[:, j * part : (j + 1) * part], y[:, j * part : (j + 1) * part]
                ).square()
                middle = squares[~torch.eye(size, dtype=torch.bool)].median()
                kernels.append(torch.exp(-squares / (2 * middle)))
            for j in range(n):
                for k in range(n):
                    if j != k:
                        product = kernels[j] @ centre @ kernels[k] @ centre
                        dependence += float(product.trace()) / (size - 1) ** 2
        z, zp = heads[2](anchor), heads[2](positive)
        z = (z - z.mean(0)) / z.std(0, correction=0).clamp(min=1e-12)
        zp = (zp - zp.mean(0)) / zp.std(0, correction=0).clamp(min=1e-12)
        c = z.T @ zp / size
        twins = float((1 - c.diagonal()).square().sum())
        twins += 0.013 * float(c.square().sum() - c.diagonal().square().sum())
    assert float(losses["self"].detach()) == pytest.approx(relative, rel=1e-4)
    assert float(losses["masked"].detach()) == pytest.approx(0.7 * masked, rel=1e-3)
    assert float(losses["factor"].detach()) == pytest.approx(0.3 * dependence, rel=1e-3)
    assert float(losses["absolute"].detach()) == pytest.approx(0.2 * twins, rel=1e-2)


def test_no_term_of_the_default_is_dead(mutag):
    """On average over seeds: the factor term has 1.4 % of the norm, less than 1 % for one seed in seven."""
    norms = {}
    for seed in range(8):
        method, _, losses = losses_of(mutag, seed=seed)
        for name, loss in losses.items():
            gradients = torch.autograd.grad(
                loss, list(method.encoder.parameters()), retain_graph=True, allow_unused=True
            )
            norm = torch.stack([g.square().sum() for g in gradients if g is not None]).sum().sqrt()
            norms[name] = norms.get(name, 0) + norm
    for name, norm in norms.items():
        assert norm > 0.01 * norms["self"], name


def test_other_negative_is_the_strong_view_of_another_graph(mutag):
    _, ours, _ = losses_of(mutag, "graphsc")
    _, other, _ = losses_of(mutag, "graphsc-rd")
    torch.testing.assert_close(other["negative"], ours["negative"].roll(1, 0))
    torch.testing.assert_close(other["positive"], ours["positive"])


def test_operations_follow_the_kind_of_graphs(mutag):
    assert make_recipe("graphsc", mutag).settings["operations"] == ["drop-nodes", "subgraph"]
    social = open_collection("motifs:10")
    expected = ["drop-nodes", "subgraph" if social.nodes.columns else "perturb-edges"]
    assert make_recipe("graphsc", social).settings["operations"] == expected


def test_paper_literal_changes_exactly_its_settings(mutag):
    settings = make_recipe("graphsc", mutag, preset="paper_literal").settings
    for key, value in PAPER_LITERAL.items():
        assert settings[key] == value
    default = make_recipe("graphsc", mutag).settings
    assert {key for key in default if default[key] != settings[key]} == set(PAPER_LITERAL)


def test_caller_overrides_preset_and_variant(mutag):
    settings = {"absolute": "barlow", "batch_norm_embedding": "uncentred"}
    recipe = make_recipe("graphsc-mse", mutag, settings, preset="paper_literal")
    assert {key: recipe.settings[key] for key in settings} == settings


@pytest.mark.parametrize("preset", ["default", "paper_literal"])
@pytest.mark.parametrize("name", TERMS)
def test_every_variant_and_preset_trains(mutag, name, preset):
    rows = train(mutag, name, preset=preset, training=TrainSettings(epochs=1)).metrics.rows
    assert np.isfinite(rows[0]["loss"])


@pytest.mark.parametrize("coupling", ["same", "independent", "nested"])
@pytest.mark.parametrize("batch_norm_views", ["separate", "joint"])
def test_couplings_and_batch_norm_views_train(mutag, coupling, batch_norm_views):
    settings = {"coupling": coupling, "batch_norm_views": batch_norm_views}
    rows = train(mutag, settings=settings, training=TrainSettings(epochs=1)).metrics.rows
    assert np.isfinite(rows[0]["loss"])


def test_joint_batch_norm_equals_separate_without_norm(mutag):
    settings = {"encoder.norm": "none"}
    _, separate, _ = losses_of(mutag, **settings)
    _, joint, _ = losses_of(mutag, batch_norm_views="joint", **settings)
    for name in separate:
        torch.testing.assert_close(separate[name], joint[name], rtol=1e-4, atol=1e-4)


def test_a_term_without_weight_has_no_head(mutag):
    method = make_recipe("graphsc-rdt", mutag).build(mutag.features, 0)
    assert isinstance(method, GraphSC)
    assert method.second_head is None
    assert method.third_head is None


def test_graphcls_subgraph_is_tried_with_the_shares_that_are_kept():
    cliques = open_collection([networkx.complete_graph(20)] * 30)  # all nodes are neighbours of the first
    settings = {"operations": ["graphcl-subgraph"], "rates": "keep", "weak_rate": 0.5, "strong_rate": 0.2}
    method = make_recipe("graphsc", cliques, settings).build(cliques.features, 0)
    views = method.views(GraphBatch.of(cliques), torch.Generator().manual_seed(0))
    weak, strong = views["positive"].ptr.diff(), views["negative"].ptr.diff()
    assert int(weak.max()) == 11  # int(0.5 n) + 1
    assert int(strong.max()) == 5
    assert (weak >= strong).all()


def test_rates_of_what_is_kept_are_those_of_what_is_changed(mutag):
    batch = GraphBatch.gather(mutag, np.arange(40))
    kept = {"rates": "keep", "weak_rate": 0.875, "strong_rate": 0.75, "operations": ["drop-nodes"]}
    changed = {"weak_rate": 0.125, "strong_rate": 0.25, "operations": ["drop-nodes"]}
    one, two = (
        make_recipe("graphsc", mutag, settings)
        .build(mutag.features, 0)
        .views(batch, torch.Generator().manual_seed(0))
        for settings in (kept, changed)
    )
    for name in ("positive", "negative"):
        assert torch.equal(one[name].source, two[name].source)


def test_a_weak_view_that_keeps_less_is_refused(mutag):
    settings = {"rates": "keep", "weak_rate": 0.1, "strong_rate": 0.25}
    with pytest.raises(ConfigError, match="weak view must keep more"):
        make_recipe("graphsc", mutag, settings).build(mutag.features, 0)
