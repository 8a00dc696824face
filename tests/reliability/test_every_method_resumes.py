"""Row 2 for every method there is: ten epochs, against a stop after four and one in mid-epoch."""

import os
import signal

import pytest
import torch

from graphsc.core.files import StoppedError
from graphsc.core.run_folder import RunFolder
from graphsc.core.serialization import load_tensors
from graphsc.data.readers import open_collection
from graphsc.methods import METHODS
from graphsc.training.callbacks import TIMES, Metrics, Reporter
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

TRAINED = sorted(
    name
    for name in METHODS
    if METHODS.get(name).kind == "trained"
    and getattr(METHODS.get(name).make, "trains", True)
    and "toy" not in name
)
STEPS = 3  # an epoch


class StopAfter(Reporter):
    def __init__(self, steps):
        self.left = steps

    def on_step_end(self, trainer):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGTERM)


def outcome(path):
    folder = RunFolder(path)
    checkpoint, facts = load_tensors(max(folder.checkpoints.iterdir()), "checkpoint")
    rows = Metrics(folder.metrics, keep=99).rows
    return {
        **load_tensors(folder.model, "model")[0],
        **checkpoint,
    }, [
        {key: value for key, value in facts.items() if key != "seconds"},
        *({name: value for name, value in row.items() if name not in TIMES} for row in rows),
    ]


@pytest.mark.faults
@pytest.mark.parametrize("method", TRAINED)
def test_ten_epochs_with_a_stop_are_ten_epochs(tmp_path, method):
    graphs = open_collection("motifs:24")
    options = {
        "training": TrainSettings(epochs=10, batch_size=8, schedule="cosine"),
        "settings": {"encoder.width": 4, "encoder.depth": 2},
    }
    train(graphs, method, out=tmp_path / "whole", **options)
    expected, rows = outcome(tmp_path / "whole")
    for steps in (4 * STEPS, 4 * STEPS + 1, 1):
        folder = tmp_path / f"stopped-{steps}"
        with pytest.raises(StoppedError):
            train(graphs, method, out=folder, reporter=StopAfter(steps), **options)
        torch.manual_seed(steps)  # another process has another state of torch's own generator
        train(graphs, method, out=folder, **options)
        found, again = outcome(folder)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        assert again == rows
