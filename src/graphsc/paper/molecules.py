"""Tables of frozen vectors of molecules, from what is stored under `results/molecules`."""

from __future__ import annotations

from pathlib import Path

from graphsc.experiments.ablation import read_plan, read_trials, table_of
from graphsc.experiments.frozen import ECFP, Part, read_scores, score_table


def ablation_markdown(results: Path) -> str:
    """What each part of GraphSC-plus adds: the trials that have run."""
    folder = results / "molecules"
    return table_of(read_plan(folder / "ablation.yaml"), read_trials(folder / "ablation.jsonl")).markdown()


def frozen_markdown(results: Path, part: Part) -> str:
    """The model that ships beside fingerprints, on the data sets that both have been scored on."""
    scores = [s for s in read_scores(results / "molecules" / "shipped.jsonl") if s.part == part]
    by_fingerprints = {score.data for score in scores if score.model == ECFP}
    both = by_fingerprints & {score.data for score in scores if score.model != ECFP}
    return score_table([score for score in scores if score.data in both]).markdown()
