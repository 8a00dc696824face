from __future__ import annotations

import pytest

from graphsc.core.config import build
from graphsc.core.errors import ConfigError
from graphsc.views import VIEWS, DropNodes, MaskAttributes, PerturbEdges, View


def test_all_names_are_there():
    assert set(VIEWS) >= {
        "identity",
        "drop-nodes",
        "perturb-edges",
        "mask-attributes",
        "subgraph",
        "graphcl-drop-nodes",
        "graphcl-perturb-edges",
        "graphcl-mask-attributes",
        "graphcl-subgraph",
    }
    assert all(isinstance(VIEWS.get(name)(), View) for name in VIEWS)


def test_settings_from_outside_are_checked():
    view = build(VIEWS.get("mask-attributes"), {"token": 3}, "mask-attributes")
    assert isinstance(view, MaskAttributes)
    assert view.token == 3
    assert isinstance(build(VIEWS.get("perturb-edges"), {"mode": "drop"}, "edges"), PerturbEdges)
    for settings in ({"mode": "add"}, {"mood": "drop"}, {"mode": 3}):
        with pytest.raises(ConfigError, match="mo"):
            build(VIEWS.get("perturb-edges"), settings, "edges")
    with pytest.raises(ConfigError, match="std"):
        build(VIEWS.get("mask-attributes"), {"std": -0.5}, "mask-attributes")


@pytest.mark.parametrize("rate", [-0.1, 1.01, float("nan")])
def test_a_rate_that_is_no_fraction_is_refused(make, seeded, rate):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        DropNodes()(make([(3, [])]), rate, seeded(0))
