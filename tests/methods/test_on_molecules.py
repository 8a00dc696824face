"""Every trained method with the molecule encoder: one step, and embeddings."""

import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.methods import METHODS, make_recipe
from graphsc.methods.baselines import MultiScale

NAMES = [name for name in METHODS if METHODS.get(name).kind == "trained" and not name.startswith("toy-")]
# Their readout or their input supports gin only.
OF_GIN = [name for name in NAMES if issubclass(METHODS.get(name).make, MultiScale)] + ["gcc"]
SMALL = {"encoder.depth": 3, "encoder.width": 20}


@pytest.fixture(scope="module")
def molecules(made_up_molecules):
    return made_up_molecules[:16]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_GIN])
def test_one_step(molecules, name):
    method = make_recipe(name, molecules, SMALL, encoder="molecule-gin").build(molecules.features, 0)
    generator = torch.Generator().manual_seed(0)
    batch = GraphBatch.of(molecules)
    method.begin(molecules, generator)
    for player in method.players() if method.trains else []:
        encoded = method.encode(method.views(batch, generator), player.name)
        losses = method.objective(encoded, player.name)
        torch.stack(list(losses.values())).sum().backward()
        for parameter in player.parameters:
            assert parameter.grad is not None
            assert torch.isfinite(parameter.grad).all()
    with torch.no_grad():
        rows = method.eval().embed(batch)
    assert rows.shape == (16, method.dimensions(molecules.features))
    assert torch.isfinite(rows).all()


@pytest.mark.parametrize("name", OF_GIN)
def test_a_method_for_gin_refuses_other_encoders(molecules, name):
    with pytest.raises(ConfigError, match="use --encoder gin"):
        make_recipe(name, molecules, SMALL, encoder="molecule-gin").build(molecules.features, 0)
