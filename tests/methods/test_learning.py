"""Every variant and preset learns on real graphs without collapsing; takes minutes, run with -m slow."""

import pytest

from graphsc.core.errors import NotFoundError
from graphsc.data.sources import open_collection
from graphsc.losses import effective_rank
from graphsc.training.run import embed_with, train
from graphsc.training.settings import TrainSettings

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
    assert rank(run) >= untrained / 2
    if variant != "graphsc-rdt":
        assert any(0.05 <= share <= 0.95 for share in active)
