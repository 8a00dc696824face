"""The fine-tuned model: outputs, units and loss; which weights are accepted and which are refused."""

import numpy as np
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.molecule_gin import MoleculeGin
from graphsc.finetuning.model import FineTuned, resolve_encoder
from graphsc.training.train import train


@pytest.fixture
def batch(molecules):
    return GraphBatch.gather(molecules.collection, np.arange(6))


def make_model(batch, **options):
    torch.manual_seed(0)
    return FineTuned(MoleculeGin(batch.features, width=8, depth=2), **options).eval()


def test_loss_is_the_cross_entropy_of_the_outputs(batch):
    method = make_model(batch, tasks=1)
    losses = method.objective(method.encode({"anchor": batch}))
    expected = nn.functional.binary_cross_entropy_with_logits(method(batch), batch.y)
    assert list(losses) == ["bce"]
    torch.testing.assert_close(losses["bce"], expected)


def test_a_regression_outputs_the_units_of_its_labels(batch):
    method = make_model(batch, tasks=1, kind="regression")
    method.standardise(torch.tensor([[10.0], [14.0], [float("nan")]]))
    assert (float(method.mean), float(method.deviation)) == (12.0, 2.0)
    raw = method.head(method.encoder(batch))
    torch.testing.assert_close(method(batch), 12 + 2 * raw)
    losses = method.objective({"output": raw, "labels": method(batch).detach() + 2})
    assert losses["mse"].item() == pytest.approx(1.0, rel=1e-4)  # off by one deviation everywhere


def test_a_constant_target_has_deviation_one(batch):
    method = make_model(batch, tasks=1, kind="regression")
    method.standardise(torch.tensor([[3.0], [3.0]]))
    assert float(method.deviation) == 1.0


def test_missing_or_unusable_weights_are_refused(molecules, tmp_path):
    features = molecules.collection.features
    with pytest.raises(NotFoundError, match="no such weights"):
        resolve_encoder(tmp_path / "nothing", features)
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match="no finished run"):
        resolve_encoder(tmp_path / "empty", features)
    torch.save({"a": torch.zeros(1)}, tmp_path / "pickle.pt")
    with pytest.raises(DamagedFileError, match="it was not run"):
        resolve_encoder(tmp_path / "pickle.pt", features)
    train(molecules.collection, "raw", out=tmp_path / "raw", device="cpu")
    with pytest.raises(ConfigError, match="raw has no encoder to fine-tune"):
        resolve_encoder(tmp_path / "raw", features)


def test_random_initialisation_follows_the_seed_and_dropout_is_set(molecules):
    spec = resolve_encoder("none", molecules.collection.features, settings={"width": 8, "depth": 2})
    one, same, other = (spec.build(seed, dropout=0.3) for seed in (0, 0, 1))
    assert one.dropout == 0.3
    assert torch.equal(one.blocks[0].first.weight, same.blocks[0].first.weight)
    assert not torch.equal(one.blocks[0].first.weight, other.blocks[0].first.weight)
    with pytest.raises(ConfigError, match="no setting 'widht'"):
        resolve_encoder("none", molecules.collection.features, settings={"widht": 8})
