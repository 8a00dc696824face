"""Precision by what the device has: the choice, the warning, and what a run stores of it."""

import pytest
import torch

from graphsc.core.config import read_config
from graphsc.core.errors import ConfigError
from graphsc.core.run_folder import RunFolder
from graphsc.training import distributed
from graphsc.training.callbacks import Reporter
from graphsc.training.distributed import has_fast_bf16, pick_precision, precision_warning
from graphsc.training.pretrain import pretrain
from graphsc.training.train import train


class Lines(Reporter):
    def __init__(self):
        self.lines = []

    def log(self, message):
        self.lines.append(message)


@pytest.fixture
def cpu(monkeypatch):
    """`cpu(True)`: every CPU has 16-bit products from now on; `cpu(False)`: none has."""
    return lambda fast: monkeypatch.setattr(distributed, "has_fast_bf16", lambda device: fast)


@pytest.mark.parametrize(
    ("wanted", "fast", "expected"),
    [
        ("auto", True, "bf16"),
        ("auto", False, "full"),
        ("full", True, "full"),
        ("full", False, "full"),
        ("bf16", True, "bf16"),
        ("bf16", False, "bf16"),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_only_auto_depends_on_the_device(wanted, fast, expected, device):
    assert pick_precision(wanted, device, fast) == expected


@pytest.mark.parametrize(
    ("precision", "device", "fast", "warned"),
    [
        ("bf16", "cpu", False, True),
        ("bf16", "cpu", True, False),
        ("full", "cpu", False, False),
        ("bf16", "cuda", False, False),
        ("bf16", "mps", False, False),
    ],
)
def test_bf16_is_warned_of_on_a_cpu_without_it(precision, device, fast, warned):
    warning = precision_warning(precision, device, fast)
    assert (warning is not None) == warned
    assert not warned or "slower than full" in warning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor : 0\nflags\t\t: fpu avx512f avx512_bf16 sse\n", True),
        ("flags : fpu amx_tile amx_bf16\n", True),
        ("Features : fp asimd bf16 i8mm\n", True),
        ("flags : fpu avx2 avx512f avx512_vnni\n", False),
        ("model name : avx512_bf16 in a name\nflags : fpu\n", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("torch_answers", [True, False])
def test_flags_of_the_cpu_are_read_where_torch_does_not_find_the_products(
    monkeypatch, tmp_path, text, expected, torch_answers
):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        if torch_answers:
            monkeypatch.setattr(torch.cpu, name, lambda: False)
        else:  # a version without them
            monkeypatch.delattr(torch.cpu, name)
    (tmp_path / "cpuinfo").write_text(text)
    assert has_fast_bf16("cpu", tmp_path / "cpuinfo") is expected


@pytest.mark.parametrize("name", ["_is_avx512_bf16_supported", "_is_amx_tile_supported"])
def test_torch_is_asked_before_the_flags(monkeypatch, tmp_path, name):
    for other in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, other, lambda found=other == name: found)
    assert has_fast_bf16("cpu", tmp_path / "no such file")


def test_a_system_without_cpuinfo_has_no_fast_bf16(monkeypatch, tmp_path):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False)
    assert not has_fast_bf16("cpu", tmp_path / "no such file")
    assert not has_fast_bf16("mps")


@pytest.mark.parametrize(("fast", "chosen"), [(True, "bf16"), (False, "full")])
def test_auto_trains_as_the_precision_it_chooses_and_stores_that(motifs, quick, tmp_path, cpu, fast, chosen):
    cpu(fast)
    run = train(motifs, training=quick(epochs=1, precision="auto"), out=tmp_path / "r", device="cpu")
    same = train(motifs, training=quick(epochs=1, precision=chosen), device="cpu")
    assert read_config(RunFolder(tmp_path / "r").config)["training"]["precision"] == chosen
    weights = same.model.method.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in run.model.method.state_dict().items())


def test_a_machine_that_would_choose_otherwise_does_not_resume(motifs, quick, tmp_path, cpu):
    settings = quick(epochs=1, precision="auto")
    cpu(True)
    train(motifs, training=settings, out=tmp_path / "r", device="cpu")
    cpu(False)
    with pytest.raises(ConfigError, match="precision: 'bf16' against 'full'"):
        train(motifs, training=settings, out=tmp_path / "r", device="cpu")


@pytest.mark.parametrize("fast", [True, False])
def test_slow_bf16_is_reported_once_and_trains(motifs, quick, cpu, fast):
    cpu(fast)
    lines = Lines()
    train(motifs, training=quick(epochs=1, precision="bf16"), device="cpu", reporter=lines)
    assert sum("no 16-bit products" in line for line in lines.lines) == (0 if fast else 1)


def test_a_model_card_has_the_precision_that_was_chosen(cpu):
    pytest.importorskip("rdkit")
    cpu(True)
    smiles = ["C" * length + "O" * tail for length in range(1, 12) for tail in range(2)]
    settings = {"encoder.depth": 2, "encoder.width": 8}
    done = pretrain(smiles, settings=settings, held_out=4, epochs=1, precision="auto", device="cpu", seed=0)
    assert done.card.training["precision"] == "bf16"
