"""What cannot be started from is refused in a sentence."""

import pytest
import torch

from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.finetuning.model import start_from
from graphsc.training.train import train


def test_what_is_no_weights_is_refused(molecules, tmp_path):
    features = molecules.collection.features
    with pytest.raises(NotFoundError, match="no such weights"):
        start_from(tmp_path / "nothing", features)
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match="no finished run"):
        start_from(tmp_path / "empty", features)
    torch.save({"a": torch.zeros(1)}, tmp_path / "pickle.pt")
    with pytest.raises(DamagedFileError, match="it was not run"):
        start_from(tmp_path / "pickle.pt", features)
    train(molecules.collection, "raw", out=tmp_path / "raw", device="cpu")
    with pytest.raises(ConfigError, match="raw has no encoder to fine-tune"):
        start_from(tmp_path / "raw", features)


def test_first_weights_follow_the_seed_and_dropout_is_the_tuning_s(molecules):
    start = start_from("none", molecules.collection.features, settings={"width": 8, "depth": 2})
    one, same, other = (start.build(seed, dropout=0.3) for seed in (0, 0, 1))
    assert one.dropout == 0.3
    assert torch.equal(one.blocks[0].first.weight, same.blocks[0].first.weight)
    assert not torch.equal(one.blocks[0].first.weight, other.blocks[0].first.weight)
    with pytest.raises(ConfigError, match="no setting 'widht'"):
        start_from("none", molecules.collection.features, settings={"widht": 8})
