from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.features import HIDDEN
from graphsc.views import Compose, GraphCLMaskAttributes, MaskAttributes

GRAPHS = [(8, [(0, 1), (2, 3)]), (3, [(0, 1)])]


def test_masked_rows_are_noise_and_the_others_untouched(make, seeded):
    batch = make([(2000, [])], plain=True)
    result = MaskAttributes()(batch, 0.5, seeded(0))
    assert len(result.replaced) == 1000
    noise = result.replacement
    assert abs(float(noise.mean()) - 0.5) < 0.03
    assert abs(float(noise.std()) - 0.5) < 0.03
    rest = torch.ones(2000, dtype=torch.bool)
    rest[result.replaced] = False
    assert torch.equal(result.dense_x()[rest], batch.dense_x()[rest])
    assert torch.equal(result.dense_x()[result.replaced], noise)
    assert result.source is batch.source


def test_a_second_mask_adds_to_the_first(make, seeded):
    batch = make(GRAPHS)
    first = MaskAttributes()(batch, 0.5, seeded(0))
    second = MaskAttributes(mean=100.0, std=0.0)(first, 0.5, seeded(1))
    fresh = (second.dense_x() == 100).all(1)
    assert fresh.sum() == 4 + 2
    assert torch.equal(second.dense_x()[~fresh], first.dense_x()[~fresh])
    assert set(first.replaced.tolist()) <= set(second.replaced.tolist())


def test_a_token_takes_the_place_of_codes(make, seeded):
    batch = make(GRAPHS)
    result = MaskAttributes(token=8)(batch, 0.4, seeded(0))
    masked = result.codes[:, 0] == 8
    assert [int(masked[:8].sum()), int(masked[8:].sum())] == [3, 1]
    assert (result.codes[masked, 1] == 0).all()
    assert (result.floats[masked] == 0).all()
    assert torch.equal(result.codes[~masked], batch.codes[~masked])
    assert result.replaced is None


def test_a_token_also_hides_noise(make, seeded):
    batch = make(GRAPHS)
    result = Compose([MaskAttributes(), MaskAttributes(token=8)])(batch, 1.0, seeded(0))
    assert len(result.replaced) == 0
    assert (result.codes[:, 0] == 8).all()


def test_a_token_the_features_do_not_have_is_refused(make, seeded):
    with pytest.raises(ConfigError, match="token 9"):
        MaskAttributes(token=9)(make(GRAPHS), 0.4, seeded(0))


def with_hidden(batch):
    """The same batch where code 8 of the first column says that a node is hidden."""
    first, *others = batch.features.columns
    values = tuple(HIDDEN if code == 8 else str(code) for code in range(first.cardinality))
    return replace(batch, features=replace(batch.features, columns=(replace(first, values=values), *others)))


@pytest.mark.parametrize("value", ["auto", "token"])
def test_features_with_a_code_for_hidden_nodes_get_it(make, seeded, value):
    result = MaskAttributes(value=value)(with_hidden(make(GRAPHS)), 1.0, seeded(0))
    assert (result.codes[:, 0] == 8).all()
    assert result.replaced is None


def test_noise_can_be_asked_for_all_the_same(make, seeded):
    batch = with_hidden(make(GRAPHS))
    result = MaskAttributes(value="noise")(batch, 1.0, seeded(0))
    assert torch.equal(result.codes, batch.codes)
    assert len(result.replaced) == 11


def test_the_published_mask_is_noise_whatever_the_features(make, seeded):
    assert len(GraphCLMaskAttributes()(with_hidden(make(GRAPHS)), 1.0, seeded(0)).replaced) == 11


def test_a_token_that_neither_features_nor_user_name_is_refused(make, seeded):
    with pytest.raises(ConfigError, match="no code for hidden nodes"):
        MaskAttributes(value="token")(make(GRAPHS), 0.4, seeded(0))


@pytest.mark.parametrize(
    "setting", [{"std": -1.0}, {"token": -1}, {"value": "zero"}, {"value": "noise", "token": 1}]
)
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(ConfigError):
        MaskAttributes(**setting)
