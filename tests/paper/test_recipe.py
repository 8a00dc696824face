"""Recipes are read strictly, and a request turns them into trials."""

import pytest

from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.paper.recipe import NAMES, SEARCH, Request, expand, is_available, is_small, read_recipe


@pytest.mark.parametrize("name", NAMES)
def test_the_paper_s_recipes_are_valid(name):
    recipe = read_recipe(name)
    assert recipe.name == name
    assert recipe.title
    assert bool(recipe.parts) != (recipe.kind == "statistics")


def test_rates_are_the_21_pairs_with_a_weak_rate_below_the_strong_one():
    weak, strong = (0.05, 0.1, 0.15, 0.2), (0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
    expected = {(a, b) for a in weak for b in strong if a < b}
    points = read_recipe("figure4").parts[0].points()
    assert {(point["weak_rate"], point["strong_rate"]) for point in points} == expected
    assert len(points) == 21


def test_a_part_that_varies_nothing_has_one_point():
    assert read_recipe("table3").parts[0].points() == [{}]


RECIPE = "kind: comparison\ntitle: T\ndata: ['motifs:30']\nparts: [{methods: [raw]}]\n"


def test_a_recipe_is_read_from_a_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE)
    assert read_recipe(str(path)).name == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RECIPE.replace("title", "titel"), "'titel'.*did you mean 'title'"),
        (RECIPE.replace("comparison", "comparsion"), "kind"),
        (RECIPE.replace("methods", "metods"), "'metods'.*did you mean 'methods'"),
        (RECIPE.replace("raw", "rwa"), "did you mean 'raw'"),
        (RECIPE + "seeds: 0\n", "use 1 or more"),
        (RECIPE + "search: {space: {training.learning_rate: []}}\n", "has no values"),
        (RECIPE + "search: {space: {encoder.width: {low: 1.0, high: 2.0}}}\n", "is no grid"),
        (RECIPE + "search: {space: {encoder.width: [1]}, points: 0}\n", "one point"),
        (RECIPE + "search: {space: {encoder.width: [1]}, points_on: {mutag: 0}}\n", "one point"),
        (RECIPE + "search: 3\n", "`search` must be"),
        (RECIPE.replace("[{methods: [raw]}]", "[3]"), "part 1"),
        (RECIPE.replace("[{methods: [raw]}]", "3"), "must be a list"),
        (RECIPE.replace("parts: [{methods: [raw]}]", ""), "needs some"),
        (RECIPE.replace("comparison", "statistics"), "have no `parts`"),
    ],
)
def test_a_wrong_recipe_is_refused(tmp_path, text, message):
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_recipe(str(path))


def test_an_unknown_name_is_answered_with_the_nearest_one():
    with pytest.raises(ConfigError, match="table3"):
        read_recipe("tabel3")


# Trials per data set, and data sets, counted by hand from the paper: 17 rows; 5 rows; 7 batch sizes of 2
# methods and 7 K; 5 curves; 21 pairs and GraphCL; 3 x 6 weights and the untrained encoder.
EACH = {
    "table3": (17, 8),
    "table5": (5, 8),
    "figure1": (21, 1),
    "figure3": (5, 4),
    "figure4": (22, 4),
    "figure5": (19, 4),
}


# Seeds: five on MUTAG, PROTEINS and IMDB-BINARY, three on the five larger data sets; three in figures.
SEEDS = {"table3": 3 * 5 + 5 * 3, "table5": 3 * 5 + 5 * 3}


@pytest.mark.parametrize("name", EACH)
def test_a_full_recipe_is_a_product_of_trials_data_sets_and_seeds(name):
    per_set, sets = EACH[name]
    planned = expand(read_recipe(name), Request(search=False))
    assert len(planned) == per_set * SEEDS.get(name, 3 * sets)


@pytest.mark.parametrize(("name", "sets"), [("table3", 4), ("table5", 4), ("figure1", 1), ("figure3", 2)])
def test_quick_has_small_data_sets_and_one_seed_with_the_same_epochs(name, sets):
    recipe = read_recipe(name)
    quick = expand(recipe, Request("quick"))
    assert len(quick) == EACH[name][0] * sets
    assert {cell.trial.seed for cell in quick} == {0}
    assert all(is_small(cell.trial.data) for cell in quick)
    full = expand(recipe, Request(search=False))
    assert {c.trial.loop().epochs for c in quick} == {c.trial.loop().epochs for c in full}


def test_day_has_one_seed_on_large_data_sets_and_all_on_small_ones():
    planned = expand(read_recipe("table5"), Request("day"))
    # 4 large data sets once, MUTAG, PROTEINS and IMDB-BINARY five times, DD three times; 5 rows each.
    assert len(planned) == 5 * (4 * 1 + 3 * 5 + 3)


SEARCHED = ["graphsc", "graphcl", "graphsc-plus", "untrained"]


def test_the_search_has_as_many_points_for_every_method():
    planned = expand(read_recipe("table3"), Request(data=["mutag"], seeds=1, methods=SEARCHED, search=True))
    candidates = [cell for cell in planned if cell.part == SEARCH]
    counts = [[cell.trial.method for cell in candidates].count(method) for method in SEARCHED]
    assert counts == [30, 30, 30, 30]
    assert all(cell.trial.inner for cell in candidates)
    assert len({cell.trial.key() for cell in planned}) == len(planned)


def test_a_method_with_few_settings_has_further_initialisations_on_the_same_folds():
    """An untrained encoder has 2 widths, 2 depths and 2 places of BatchNorm."""
    planned = expand(
        read_recipe("table3"), Request(data=["mutag"], seeds=2, methods=["untrained"], search=True)
    )
    candidates = [cell for cell in planned if cell.part == SEARCH]
    assert len({repr(cell.point) for cell in candidates}) == 8
    for seed in (0, 1):
        own = [cell for cell in candidates if cell.trial.folds_from == seed]
        assert [cell.again for cell in own] == [0] * 8 + [1] * 8 + [2] * 8 + [3] * 6
        assert {cell.trial.seed for cell in own} == {seed, 10_000 + seed, 20_000 + seed, 30_000 + seed}


def test_points_are_the_same_each_time_and_shared_by_the_methods():
    search = read_recipe("table3").search
    assert search.drawn("graphsc") == search.drawn("graphsc")
    size = [{key: value for key, value in point.items() if "." in key} for point in search.drawn("graphsc")]
    assert size == [{k: v for k, v in point.items() if "." in k} for point in search.drawn("graphsc-plus")]


def test_settings_that_a_method_does_not_have_are_dropped():
    search = read_recipe("table3").search
    assert all("rate" in point and "lambda_masked" not in point for point in search.drawn("graphcl"))
    assert all("rate" not in point and "weak_rate" in point for point in search.drawn("graphsc"))
    assert {tuple(point) for point in search.drawn("untrained")} == {
        ("encoder.width", "encoder.depth", "encoder.norm")
    }


def test_fewer_points_are_the_first_of_them():
    search = read_recipe("table3").search
    assert search.drawn("graphsc", 5) == search.drawn("graphsc", 30)[:5]


@pytest.mark.parametrize(
    ("data", "asked", "count"), [("mutag", None, 30), ("nci1", None, 10), ("mutag", 3, 3), ("nci1", 12, 12)]
)
def test_the_number_of_points_depends_on_the_data_set_unless_asked_for(data, asked, count):
    request = Request(data=[data], seeds=1, methods=SEARCHED, search=True, points=asked)
    planned = expand(read_recipe("table3"), request)
    methods = [cell.trial.method for cell in planned if cell.part == SEARCH]
    assert [methods.count(method) for method in SEARCHED] == [count] * 4


def test_a_search_is_requested_by_name_only():
    assert all(cell.part != SEARCH for cell in expand(read_recipe("table3"), Request()))
    with pytest.raises(ConfigError, match="no `search`"):
        expand(read_recipe("table5"), Request(search=True))


def test_candidates_come_seed_by_seed():
    planned = expand(read_recipe("table3"), Request(methods=["untrained"], search=True))
    seeds = [cell.trial.folds_from for cell in planned if cell.part == SEARCH]
    assert seeds == sorted(seeds)
    assert len(seeds) == 3 * (30 + 5 * 10)  # seeds, points of MUTAG and of five larger sets


def test_methods_are_chosen_and_new_ones_are_added_to_open_parts():
    request = Request(data=["mutag"], seeds=1, methods=["graphsc", "graphsc-mse"])
    planned = expand(read_recipe("figure4"), request)
    assert {(cell.part, cell.trial.method) for cell in planned} == {
        ("rates", "graphsc"),
        ("rates", "graphsc-mse"),
    }
    with pytest.raises((ConfigError, NotFoundError), match="grahpsc"):
        Request(methods=["grahpsc"])


def test_points_set_settings_of_the_method_and_of_the_loop():
    planned = expand(read_recipe("figure1"), Request(data=["mutag"], seeds=1))
    batch = next(cell for cell in planned if cell.part == "batch" and cell.point["training.batch_size"] == 32)
    assert batch.trial.loop().batch_size == 32
    assert batch.trial.settings == {}
    sampled = next(cell for cell in planned if cell.part == "sampled" and cell.point["negatives"] == 7)
    assert sampled.trial.settings == {"negatives": 7}
    assert sampled.trial.loop().batch_size == 128


def test_other_features_and_another_probe_can_be_requested():
    planned = expand(read_recipe("table5"), Request(data=["mutag"], seeds=1, features=["auto", "constant"]))
    assert [cell.trial.features for cell in planned].count("constant") == 5
    (cheap,) = {c.trial.protocol for c in expand(read_recipe("table5"), Request("quick", probe="cheap"))}
    assert cheap.grid == (10.0,)
    assert "Nothing is chosen: C is 10 for all" in cheap.words()


def test_data_sets_outside_the_catalogue_count_as_small_and_available(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHSC_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert is_small("motifs:30")
    assert is_available("motifs:30")
    assert not is_available("reddit-multi-5k")


def test_zero_seeds_are_refused():
    with pytest.raises(ConfigError, match="1 or more"):
        Request(seeds=0)


def test_every_number_of_the_paper_s_tables_has_one_protocol():
    """Inner folds in file order choose C badly where neighbours in the file are alike."""
    names = [name for name in NAMES if read_recipe(name).kind != "statistics"]
    protocols = {c.trial.protocol for name in names for c in expand(read_recipe(name), Request(search=False))}
    assert {protocol.inner_order for protocol in protocols} == {"shuffled"}


@pytest.mark.parametrize("name", ["table1", "table3", "table5", "figure3"])
def test_reddit_multi_5k_takes_part(name):
    assert "reddit-multi-5k" in read_recipe(name).data
