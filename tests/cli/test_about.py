"""The table of all methods, on the command line and on its page."""

import json
import re
import shutil
from pathlib import Path

from graphsc.experiments.plan import read_plan
from graphsc.experiments.result import ResultStore
from graphsc.experiments.tables import table_text
from graphsc.methods import METHODS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "methods" / "index.md"


def own_methods():
    return [name for name in METHODS if METHODS.get(name).make.__module__.startswith("graphsc.methods.")]


def test_the_long_list_says_what_is_contrasted_and_at_what_cost(run):
    code, out, _ = run("methods", "--long", "--json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)}
    assert set(own_methods()) <= set(rows)
    assert rows["graphcl"] == {
        "name": "graphcl",
        "kind": "trained",
        "year": 2020,
        "contrasts": "two views of a graph",
        "negatives": "other graphs of the batch",
        "augmentation": "random perturbations",
        "passes": 2,
        "published": "8 TU, 8 transfer",
    }


def test_the_page_is_what_the_registry_gives(run, tmp_path):
    shutil.copy(PAGE, tmp_path / "index.md")
    code, out, err = run(
        "methods", "--plan", ROOT / "results/plan.yaml", "--results", ROOT / "results",
        "--page", tmp_path / "index.md",
    )  # fmt: skip
    assert code == 0, err
    assert "nothing has changed" in out, "run: make results"


def test_ranks_are_those_of_the_systems_table(run):
    options = ["--plan", ROOT / "results/plan.yaml", "--results", ROOT / "results"]
    code, out, err = run("methods", "--long", *options, "--json")
    assert code == 0, err
    ranks = {row["name"]: row["rank here"] for row in json.loads(out)}
    plan = {table.name: table for table in read_plan(ROOT / "results/plan.yaml")}
    table = table_text(plan["systems"], ResultStore(ROOT / "results"))
    for name in ("graphcl", "untrained", "gic"):
        line = next(line for line in table.splitlines() if re.match(rf"\|\s*{name}\s*\|", line))
        assert f" {ranks[name]} " in line
    assert ranks["attrmasking"] == "", "it is not in the table"


def test_ranks_need_a_table_of_systems(run, tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "tables: {other: {title: x, trials: [{data: [mutag], methods: [raw]}]}}"
    )
    code, _, err = run("methods", "--long", "--plan", tmp_path / "plan.yaml")
    assert code == 2
    assert "no table of accuracies called systems" in err


def test_every_method_of_the_page_has_a_page_of_its_own():
    text = PAGE.read_text()
    links = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", text, re.M))
    assert sorted(links) == own_methods()
    for name, link in links.items():
        assert f"| [{name}] |" in text
        assert (PAGE.parent / link).is_file(), name


def test_every_page_of_a_method_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in PAGE.parent.glob("*.md"):
        assert f"methods/{page.name}" in navigation
