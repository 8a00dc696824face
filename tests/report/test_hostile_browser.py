"""Scripts planted in every text that a data file can contain: none runs in a real browser."""

import pytest
from test_html import filled_with

from graphsc.cli import main
from graphsc.report.html import write_report

PLANTED = (
    "</script></style><script>window.pwned=1</script>"
    '<img src=x onerror="window.pwned=1"><svg onload="window.pwned=1">'
)


@pytest.fixture
def table(tmp_path):
    """Graphs whose ids, classes and node labels are all hostile."""
    names = [f"{PLANTED}{number}".replace('"', '""') for number in range(6)]
    edges = "".join(f'"{name}",0,1\n"{name}",1,2\n' for name in names)
    (tmp_path / "e.csv").write_text("graph_id,source,target\n" + edges)
    kinds = "".join(
        f'"{name}","{PLANTED.replace(chr(34), chr(34) * 2)}{k % 2}"\n' for k, name in enumerate(names)
    )
    (tmp_path / "g.csv").write_text("graph_id,kind\n" + kinds)
    atoms = "".join(f'"{name}",{node},"{names[node]}"\n' for name in names for node in range(3))
    (tmp_path / "n.csv").write_text("graph_id,node_id,atom\n" + atoms)
    collection = tmp_path / "c.safetensors"
    options = ("--reader-set", f"graphs={tmp_path / 'g.csv'}", "--reader-set", f"nodes={tmp_path / 'n.csv'}")
    assert main.run(["data", "convert", str(tmp_path / "e.csv"), *options, "--out", str(collection)]) == 0
    return collection


@pytest.fixture
def pages(table, tmp_path):
    """The explorer and the report of a run on those graphs, and a report with a script in every field."""
    run = str(tmp_path / "run")
    assert main.run(["train", str(table), "--epochs", "1", "--out", run]) == 0
    assert main.run(["explore", run, "--map", "pca", "--out", str(tmp_path / "explore.html")]) == 0
    report = ["report", run, "--no-maps", "--jobs", "1", "--out", str(tmp_path / "report.html")]
    assert main.run(report) == 0
    write_report(tmp_path / "every.html", filled_with(PLANTED))
    return [tmp_path / name for name in ("explore.html", "report.html", "every.html")]


def test_no_planted_text_becomes_markup(pages):
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert "<script>window.pwned" not in text, path.name
        assert "<img src=x" not in text, path.name
        assert "<svg onload" not in text, path.name


def test_no_planted_script_runs_in_a_browser(chromium, pages):
    for path in pages:
        page = chromium.open(path)
        assert page.value("window.pwned === undefined"), path.name
        assert page.value("document.querySelectorAll('img[src=x], svg[onload]').length") == 0, path.name
        page.close()
