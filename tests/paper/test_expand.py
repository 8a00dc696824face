"""A recipe becomes the trials that a budget pays for; epochs are never fewer."""

import pytest

from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.paper.recipe import SEARCH, Request, expand, is_here, is_small, read_recipe

# Counted by hand from the paper: 17 rows and 8 sets; 5 rows; 7 batch sizes of 2 methods and 7 K; 5 curves;
# 21 pairs and GraphCL; 3 x 6 weights and the untrained encoder.
EACH = {
    "table3": (17, 8),
    "table5": (5, 8),
    "figure1": (21, 1),
    "figure3": (5, 4),
    "figure4": (22, 4),
    "figure5": (19, 4),
}


@pytest.mark.parametrize("name", EACH)
def test_the_whole_of_it_is_a_product_of_trials_sets_and_five_seeds(name):
    per_set, sets = EACH[name]
    cells = expand(read_recipe(name), Request(search=False))
    assert len(cells) == per_set * sets * 5


@pytest.mark.parametrize(("name", "sets"), [("table3", 4), ("table5", 4), ("figure1", 1), ("figure3", 2)])
def test_quick_is_small_sets_and_one_seed_with_the_same_epochs(name, sets):
    recipe = read_recipe(name)
    quick = expand(recipe, Request("quick"))
    assert len(quick) == EACH[name][0] * sets
    assert {cell.trial.seed for cell in quick} == {0}
    assert all(is_small(cell.trial.data) for cell in quick)
    full = expand(recipe, Request(search=False))
    assert {c.trial.loop().epochs for c in quick} == {c.trial.loop().epochs for c in full}


def test_a_day_has_one_seed_of_large_sets_and_all_of_small_ones():
    cells = expand(read_recipe("table5"), Request("day"))
    # 4 large sets once, 4 small ones (MUTAG, PROTEINS, DD, IMDB-BINARY) five times, 5 rows each.
    assert len(cells) == 5 * (4 * 1 + 4 * 5)


def test_the_search_has_six_candidates_for_every_method_that_trains():
    cells = expand(read_recipe("table3"), Request(data=["mutag"], seeds=1, search=True))
    found = [cell for cell in cells if cell.part == SEARCH]
    assert {cell.trial.method for cell in found} == {
        "infograph", "graphcl", "joao", "joaov2", "adgcl", "simgrace", "rgcl", "lagraph", "graphsc-mse",
        "graphsc",
    }  # fmt: skip
    assert len(found) == 10 * 3 * 2
    assert all(cell.trial.inner for cell in found)
    assert len({cell.trial.key() for cell in cells}) == len(cells)


def test_methods_are_chosen_and_new_ones_join_open_parts():
    asked = Request(data=["mutag"], seeds=1, methods=["graphsc", "graphsc-mse"])
    cells = expand(read_recipe("figure4"), asked)
    assert {(cell.part, cell.trial.method) for cell in cells} == {
        ("rates", "graphsc"),
        ("rates", "graphsc-mse"),
    }
    with pytest.raises((ConfigError, NotFoundError), match="grahpsc"):
        Request(methods=["grahpsc"])


def test_points_go_to_method_and_loop():
    cells = expand(read_recipe("figure1"), Request(data=["mutag"], seeds=1))
    batch = next(cell for cell in cells if cell.part == "batch" and cell.point["training.batch_size"] == 32)
    assert batch.trial.loop().batch_size == 32
    assert batch.trial.settings == {}
    sampled = next(cell for cell in cells if cell.part == "sampled" and cell.point["negatives"] == 7)
    assert sampled.trial.settings == {"negatives": 7}
    assert sampled.trial.loop().batch_size == 128


def test_features_and_probe_can_be_others():
    cells = expand(read_recipe("table5"), Request(data=["mutag"], seeds=1, features=["auto", "constant"]))
    assert [cell.trial.features for cell in cells].count("constant") == 5
    (cheap,) = {c.trial.protocol for c in expand(read_recipe("table5"), Request("quick", probe="cheap"))}
    assert cheap.grid == (10.0,)
    assert "Nothing is chosen: C is 10 for all" in cheap.words()


def test_sets_without_a_name_count_as_small_and_as_here(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHSC_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert is_small("motifs:30")
    assert is_here("motifs:30")
    assert not is_here("reddit-multi-5k")


def test_no_seed_is_refused():
    with pytest.raises(ConfigError, match="1 or more"):
        Request(seeds=0)
