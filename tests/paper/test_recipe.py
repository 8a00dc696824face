"""Recipes are read strictly, and those of the paper are what the paper says."""

import pytest

from graphsc.core.errors import ConfigError
from graphsc.paper.recipe import NAMES, read_recipe


@pytest.mark.parametrize("name", NAMES)
def test_the_paper_s_recipes_are_valid(name):
    recipe = read_recipe(name)
    assert recipe.name == name
    assert recipe.title
    assert bool(recipe.parts) != (recipe.kind == "statistics")


def test_rates_are_the_21_pairs_with_the_weak_one_below_the_strong_one():
    weak, strong = (0.05, 0.1, 0.15, 0.2), (0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
    expected = {(a, b) for a in weak for b in strong if a < b}
    points = read_recipe("figure4").parts[0].points()
    assert {(point["weak_rate"], point["strong_rate"]) for point in points} == expected
    assert len(points) == 21


def test_a_part_that_varies_nothing_has_one_point():
    assert read_recipe("table3").parts[0].points() == [{}]


RECIPE = "kind: comparison\ntitle: T\ndata: ['motifs:30']\nparts: [{methods: [raw]}]\n"


def test_a_recipe_of_one_s_own_is_read_from_its_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE)
    assert read_recipe(str(path)).name == "mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RECIPE.replace("title", "titel"), "'titel'.*did you mean 'title'"),
        (RECIPE.replace("comparison", "comparsion"), "kind"),
        (RECIPE.replace("methods", "metods"), "'metods'.*did you mean 'methods'"),
        (RECIPE.replace("raw", "rwa"), "did you mean 'raw'"),
        (RECIPE + "seeds: 0\n", "use 1 or more"),
        (RECIPE + "search: {training.learning_rate: []}\n", "has no values"),
        (RECIPE.replace("[{methods: [raw]}]", "[3]"), "part 1"),
        (RECIPE.replace("[{methods: [raw]}]", "3"), "must be a list"),
        (RECIPE.replace("parts: [{methods: [raw]}]", ""), "needs some"),
        (RECIPE.replace("comparison", "statistics"), "have no `parts`"),
    ],
)
def test_a_wrong_recipe_is_refused_in_words(tmp_path, text, said):
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_recipe(str(path))


def test_a_name_that_there_is_not_brings_the_nearest_one():
    with pytest.raises(ConfigError, match="table3"):
        read_recipe("tabel3")
