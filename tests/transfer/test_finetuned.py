"""The method: outputs, units, and that labels reach the loss and nothing else."""

import numpy as np
import pytest
import torch
from torch import nn

from graphsc.data.batch import GraphBatch
from graphsc.encoders.molecule_gin import MoleculeGin
from graphsc.finetuning.model import FineTuned


@pytest.fixture
def batch(molecules):
    return GraphBatch.gather(molecules.collection, np.arange(6))


def tuned(batch, **options):
    torch.manual_seed(0)
    return FineTuned(MoleculeGin(batch.features, width=8, depth=2), **options).eval()


def test_the_loss_is_cross_entropy_of_the_head_s_outputs(batch):
    method = tuned(batch, tasks=1)
    losses = method.objective(method.encode({"anchor": batch}))
    expected = nn.functional.binary_cross_entropy_with_logits(method(batch), batch.y)
    assert list(losses) == ["bce"]
    torch.testing.assert_close(losses["bce"], expected)


def test_a_regression_answers_in_the_units_of_its_labels(batch):
    method = tuned(batch, tasks=1, kind="regression")
    method.standardise(torch.tensor([[10.0], [14.0], [float("nan")]]))
    assert (float(method.mean), float(method.deviation)) == (12.0, 2.0)
    raw = method.head(method.encoder(batch))
    torch.testing.assert_close(method(batch), 12 + 2 * raw)
    losses = method.objective({"output": raw, "labels": method(batch).detach() + 2})
    assert losses["mse"].item() == pytest.approx(1.0, rel=1e-4)  # off by one deviation everywhere


def test_a_constant_target_keeps_a_unit(batch):
    method = tuned(batch, tasks=1, kind="regression")
    method.standardise(torch.tensor([[3.0], [3.0]]))
    assert float(method.deviation) == 1.0
