"""Every variant and preset on real graphs: no collapse with the default. Takes minutes; run with -m slow."""

import math

import pytest

from graphsc.core.errors import NotFoundError
from graphsc.data.readers import open_collection
from graphsc.losses import effective_rank
from graphsc.training.train import embed_with, train
from graphsc.training.trainer import TrainSettings

VARIANTS = ["graphsc", "graphsc-mse", "graphsc-rd", "graphsc-nm", "graphsc-nb", "graphsc-rdt"]


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("preset", ["default", "paper_literal"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["mutag", "proteins", "imdb-binary"])
def test_rank_stays_and_triplets_are_active(name, variant, preset):
    import torch

    try:
        collection = open_collection(name)
    except NotFoundError as error:
        pytest.skip(str(error))

    def rank(run):
        return float(effective_rank(torch.from_numpy(embed_with(run.model, collection))))

    untrained = rank(train(collection, "untrained"))
    run = train(collection, variant, preset=preset, training=TrainSettings(epochs=20))
    active = [row["active_triplets"] for row in run.metrics.rows]
    print(
        f"{name} {variant} {preset}: rank {rank(run):.1f} (untrained {untrained:.1f}), "
        f"active {min(active):.2f} to {max(active):.2f}, loss {run.metrics.rows[-1]['loss']:.3f}"
    )
    assert all(math.isfinite(row["loss"]) for row in run.metrics.rows)
    # The literal reading measures distances of hundreds against a margin of 0.2: most triplets are far
    # outside it either way, and the vectors lose rank. The default was chosen to avoid that.
    if preset == "default":
        assert rank(run) >= untrained / 2
        # Another graph is nearly always far enough away already: few triplets are active.
        if variant not in ("graphsc-rd", "graphsc-rdt"):
            assert any(0.05 <= share <= 0.95 for share in active)
