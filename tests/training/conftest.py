"""A small collection, quick settings, and the toy methods."""

import sys
from pathlib import Path

import pytest

from graphsc.data.readers import open_collection
from graphsc.training.trainer import TrainSettings

sys.path.insert(0, str(Path(__file__).parent))
import toys

toys.register()


@pytest.fixture(scope="session")
def motifs():
    return open_collection("motifs:40")


@pytest.fixture
def quick():
    """`quick(epochs=3)`: settings with three batches per epoch."""
    return lambda **changes: TrainSettings(**{"epochs": 3, "batch_size": 16, **changes})
