"""reproduce, through the command line, on graphs that take seconds."""

import pytest

RECIPE = """
kind: comparison
title: A small table
data: ["motifs:40"]
seeds: 2
parts:
  - {methods: [raw, untrained], open: true}
"""
FIGURE = """
kind: convergence
title: A small figure
data: ["motifs:40"]
seeds: 1
probe: cheap
parts:
  - {methods: [graphsc], training: {epochs: 2}, curve: [0, 1, 2]}
"""


@pytest.fixture
def small(run, tmp_path):
    """`small(*options)` runs a small recipe in a folder of its own."""
    (tmp_path / "small.yaml").write_text(RECIPE)
    (tmp_path / "curve.yaml").write_text(FIGURE)

    def call(*options, name="small"):
        places = [part for place in ("results", "runs", "out") for part in (f"--{place}", tmp_path / place)]
        return run("reproduce", tmp_path / f"{name}.yaml", *places, *options)

    return call


def test_a_dry_run_lists_and_estimates_and_runs_nothing(small, tmp_path):
    code, out, _ = small("--dry-run")
    assert code == 0
    assert out.count("\traw\t") == 2
    assert "4 trials, about" in out
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "out").exists()


def test_without_running_the_table_is_empty(small, tmp_path):
    code, _, _ = small("--no-run")
    assert code == 0
    assert "4 of 4 trials have not run yet" in (tmp_path / "out" / "small.md").read_text()
    assert not (tmp_path / "results").exists()


def test_only_what_runs_says_that_a_data_set_is_not_on_this_machine(small, tmp_path, monkeypatch):
    monkeypatch.delenv("GRAPHSC_DATA", raising=False)
    code, _, err = small("--data", "nci1", "--no-run")
    assert (code, "not on this machine" in err) == (0, False)
    code, _, err = small("--data", "nci1")
    assert (code, "not on this machine, so not run: nci1" in err) == (0, True)


def test_a_table_is_run_made_and_not_run_twice(small, tmp_path):
    code, out, err = small("--jobs", 1)
    assert code == 0
    assert "4 trials: 0 stored, 4 to run" in err
    assert [line.rpartition("/")[2] for line in out.splitlines()] == ["small.md", "small.csv", "small.tex"]
    made = (tmp_path / "out" / "small.md").read_text()
    assert "not run" not in made
    code, _, err = small("--jobs", 1)
    assert "to run" not in err
    assert (tmp_path / "out" / "small.md").read_text() == made


def test_the_curves_of_a_figure_are_run_and_drawn(small, tmp_path):
    code, out, _ = small("--jobs", 1, name="curve")
    assert code == 0
    assert "curve.png" in out
    rows = (tmp_path / "out" / "curve.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in rows[1:]] == ["0", "1", "2"]


def test_the_drawing_of_the_method_needs_no_results(run, tmp_path):
    code, _, _ = run("reproduce", "figure2", "--out", tmp_path)
    assert code == 0
    assert "weak view" in (tmp_path / "figure2.svg").read_text()
    assert (tmp_path / "figure2.png").stat().st_size > 10_000


def test_claims_are_printed_and_kept(run, tmp_path):
    code, out, _ = run("reproduce", "claims", "--results", tmp_path, "--out", tmp_path / "out")
    assert code == 0
    assert "not tested" in out
    assert (tmp_path / "out" / "claims.md").read_text() == out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("tabel3",), "table3"),
        (("table3", "--methods", "grahpsc"), "did you mean 'graphsc'"),
        (("table3", "--seeds", "0"), "1 or more"),
        (("table3", "--budget", "week"), "budget"),
        (("figure4", "--no-run", "--data", "motifs:40", "--page", "x.md"), "cannot read the page"),
        (("table4", "--probe", "cheap"), "has no --probe"),
        (("figure2", "--page", "x.md"), "a drawing"),
        (("table4", "--features", "constant"), "has no --features"),
        (("table4", "--methods", "grahpsc"), "did you mean 'graphsc'"),
        (("table4", "--seeds", "0"), "1 or more"),
        (("table4", "--data", "bbbp", "--methods", "wl"), "none to transfer"),
        (("figure5", "--data", "motifs:40", "--methods", "graphcl"), "lambda_masked"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_before_anything_runs(run, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("reproduce", *options)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


TRANSFER = """
kind: transfer
title: A small transfer
small: []
pretraining: {{data: {data}, molecules: 24, epochs: 1}}
tables:
  frozen:
    title: frozen
    trials:
      - {{data: [{data}], way: frozen, methods: [none, infomax]}}
  tuned:
    title: tuned
    rules: [last, best]
    trials:
      - {{data: [{data}], way: fine-tuned, methods: [none], seeds: 2, settings: {{epochs: 1}}}}
"""


@pytest.fixture
def transfer(run, ring_molecules, tmp_path):
    """`transfer(*options)` runs a small recipe of transfer on molecules that are made here."""
    pytest.importorskip("rdkit")
    (tmp_path / "moved.yaml").write_text(TRANSFER.format(data=ring_molecules))

    def call(*options):
        places = [part for place in ("results", "runs", "out") for part in (f"--{place}", tmp_path / place)]
        return run("reproduce", tmp_path / "moved.yaml", *places, *options)

    return call


def test_a_dry_run_of_transfer_lists_the_weights_to_make_too(transfer, tmp_path):
    code, out, _ = transfer("--dry-run")
    assert code == 0
    rows = [line.split("\t")[1:4] for line in out.splitlines()[1:-1]]
    assert rows == [
        ["infomax", "", "pre-training"],
        ["none", "0", "frozen"],
        ["infomax", "0", "frozen"],
        ["none", "0", "fine-tuned"],
        ["none", "1", "fine-tuned"],
    ]
    assert "4 trials, about" in out
    assert "to pre-train infomax" in out
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "runs").exists()


def test_a_table_of_transfer_is_run_made_and_not_run_twice(transfer, tmp_path):
    code, out, err = transfer()
    assert code == 0, err
    assert [line.rpartition("/")[2] for line in out.splitlines()] == ["moved.md", "moved.csv", "moved.tex"]
    assert "4 trials: 0 stored, 4 to run" in err
    made = (tmp_path / "out" / "moved.md").read_text()
    assert "not run" not in made
    assert (tmp_path / "runs" / "pretrain" / "infomax" / "model.safetensors").exists()
    code, _, err = transfer()
    assert code == 0
    assert "to run" not in err
    assert (tmp_path / "out" / "moved.md").read_text() == made


def test_a_dry_run_of_the_diagnosis_lists_its_cases_and_runs_none(run, tmp_path, monkeypatch):
    """It ran them."""
    from graphsc.paper import diagnosis

    monkeypatch.setattr(diagnosis, "diagnose", None)
    stored = diagnosis._path(tmp_path, diagnosis.cases()[0])
    stored.parent.mkdir(parents=True)
    stored.write_text("{}")
    code, out, err = run(
        "reproduce", "diagnosis", "--dry-run", "--results", tmp_path, "--out", tmp_path / "o"
    )
    assert code == 0, err
    assert out.count("\tgraphsc\t") == len(diagnosis.cases()) - 1
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("what", ["figure2", "claims", "reproduction", "freeze"])
def test_a_dry_run_of_what_needs_no_trial_writes_nothing(run, tmp_path, what):
    code, out, err = run("reproduce", what, "--dry-run", "--results", tmp_path, "--out", tmp_path / "o")
    assert code == 0, err
    assert "nothing to run" in out
    assert not (tmp_path / "o").exists()
