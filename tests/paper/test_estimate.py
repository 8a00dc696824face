"""Estimates of time: what is measured, and what is taken from similar trials."""

from graphsc.experiments.trial import ProbeTrial
from graphsc.paper.estimate import estimate


def trials():
    wide = {"encoder.width": 64, "encoder.depth": 4}
    return [
        ProbeTrial("motifs:40", "untrained"),
        ProbeTrial("motifs:40", "untrained", settings=wide),
        ProbeTrial("motifs:40", "raw"),
        ProbeTrial("motifs:40", "untrained", seed=1),
    ]


def test_after_the_limit_a_trial_takes_the_time_of_similar_ones():
    narrow, wide, raw, again = estimate(trials(), limit=0.0)
    assert narrow == wide == raw == again > 0  # one measurement serves all


def test_within_the_limit_every_kind_is_measured_once():
    narrow, wide, raw, again = estimate(trials(), limit=600.0)
    assert narrow == again  # another seed is no other kind
    assert len({narrow, wide, raw}) == 3
