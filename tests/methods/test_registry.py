"""Settings under their former names, settings that came later, and methods with nothing but an entry."""

import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.core.run_folder import ADDED_SETTINGS, RENAMED_SETTINGS
from graphsc.data.readers import open_collection
from graphsc.methods import METHODS, MethodEntry, Recipe, TrainedMethod, make_recipe
from graphsc.methods.registry import declared_settings
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

FORMER = {new: old for old, new in RENAMED_SETTINGS.items()}


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:8")


def with_former_names(settings):
    return {FORMER.get(key, key): value for key, value in settings.items()}


@pytest.mark.parametrize("name", ["graphsc", "graphcl", "untrained"])
def test_a_recipe_stored_under_former_names_is_read(graphs, name):
    recipe = make_recipe(name, graphs, preset="default")
    stored = recipe.to_json()
    old = {**stored, "settings": with_former_names(stored["settings"])}
    assert old["settings"] != stored["settings"]
    assert Recipe.from_json(old) == Recipe.from_json(stored)
    assert Recipe.from_json(old).to_json() == stored
    Recipe.from_json(old).build(graphs.features, 0)


def test_former_names_override_a_preset_as_current_ones_do(graphs):
    old = declared_settings("graphsc", graphs.name, {"bn": "reestimate"}, preset="paper_literal")
    new = declared_settings(
        "graphsc", graphs.name, {"batch_norm_embedding": "reestimate"}, preset="paper_literal"
    )
    assert old == new


def test_a_method_keeps_a_setting_of_its_own_under_a_former_name(graphs):
    class Own(TrainedMethod):
        trains = False

        def __init__(self, encoder: torch.nn.Module, *, bn: str = "mine") -> None:
            super().__init__(encoder)
            self.bn = bn

    METHODS.register("toy-own-bn")(MethodEntry(Own, "-", 2026, "a toy"))
    assert make_recipe("toy-own-bn", graphs, {"bn": "other"}).settings == {"bn": "other"}


def test_a_run_with_former_names_in_its_config_is_resumed(graphs, tmp_path):
    settings = {"encoder.width": 4, "encoder.depth": 2}
    train(graphs, settings=settings, training=TrainSettings(epochs=1), out=tmp_path)
    config = tmp_path / "config.yaml"
    text = config.read_text().split("\n", 1)[1]  # without the hash, which came later than these names
    for new, old in FORMER.items():
        assert f"{new}:" in text
        text = text.replace(f"{new}:", f"{old}:")
    config.write_text(text)
    run = train(graphs, settings=settings, training=TrainSettings(epochs=2), out=tmp_path)
    assert [row["epoch"] for row in run.metrics.rows] == [1, 2]
    with pytest.raises(ConfigError, match="batch_norm_embedding"):
        train(graphs, settings=settings | {"bn": "running"}, training=TrainSettings(epochs=2), out=tmp_path)


def with_settings_of_before(stored):
    settings = {key: value for key, value in stored["settings"].items() if key not in ADDED_SETTINGS}
    return {**stored, "settings": settings}


def test_a_recipe_without_a_setting_that_came_later_does_what_it_did(graphs):
    stored = make_recipe("dgk", graphs).to_json()
    assert stored["settings"]["kernel"] == "norms"
    assert Recipe.from_json(with_settings_of_before(stored)).settings["kernel"] == "gram"


def test_a_setting_that_came_later_is_declared_where_it_changes_something(graphs):
    before = {"kernel": "gram", "corpus": "neighbours"}
    assert before.keys().isdisjoint(declared_settings("dgk", graphs.name, before))
    assert declared_settings("dgk", graphs.name)["kernel"] == "norms"


def test_a_run_from_before_a_setting_came_is_resumed(graphs, tmp_path):
    settings = {"kernel": "gram", "corpus": "neighbours"}
    train(graphs, "dgk", settings=settings, out=tmp_path)
    config = tmp_path / "config.yaml"
    lines = config.read_text().split("\n")[1:]  # without the hash
    kept = [line for line in lines if line.partition(":")[0].strip() not in settings]
    assert len(kept) == len(lines) - 2
    config.write_text("\n".join(kept))
    train(graphs, "dgk", settings=settings, out=tmp_path)
    with pytest.raises(ConfigError, match="kernel"):
        train(graphs, "dgk", out=tmp_path)
