"""A few real molecules with learnable labels, and settings small enough for a test."""

import numpy as np
import pytest

pytest.importorskip("rdkit")

RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccoc1", "c1ccsc1", "C1CCNCC1", "c1ccc2ccccc2c1", "C1CCOC1"]
CHAINS = ["", "C", "CC", "CCC", "CCO", "CCN", "CC(=O)O", "CCS"]
SMILES = [chain + ring for ring in RINGS for chain in CHAINS]


def has_nitrogen(smiles: str) -> int:
    return int("n" in smiles.lower())


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """64 molecules: whether they contain nitrogen, and a number that grows with its share."""
    path = tmp_path_factory.mktemp("table") / "tested.csv"
    lines = ["smiles,nitrogen,share"]
    lines += [
        f"{smiles},{has_nitrogen(smiles)},{20 + 10 * smiles.lower().count('n') / len(smiles):.3f}"
        for smiles in SMILES
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def molecules(table):
    from graphsc.finetuning.dataset import read_dataset

    return read_dataset(table, labels="nitrogen")


@pytest.fixture
def small():
    """`small(epochs=2)`: arguments of `finetune` for a tiny encoder."""
    from graphsc.finetuning.finetune import FineTuneSettings

    def make(**changes):
        settings = FineTuneSettings(**{"epochs": 3, "batch_size": 16, "dropout": 0.2, **changes})
        return {
            "settings": settings, "encoder_settings": {"width": 8, "depth": 2}, "device": "cpu",
            "split": "random",
        }  # fmt: skip

    return make


@pytest.fixture
def rng():
    return np.random.default_rng(0)
