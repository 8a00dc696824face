"""The notebooks run, are stored with their outputs, and become pages of the site."""

from __future__ import annotations

import ast
import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
EXTRAS = {"molecules": "rdkit", "clusters": "distributed"}


def name_of(path: Path) -> str:
    return path.stem


def cells_of(path: Path, kind: str) -> list[dict]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def test_there_are_five() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "clusters",
        "compare",
        "molecules",
        "own-graphs",
        "own-method",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in order in an empty folder, with MUTAG as the only data; their last value can be shown."""
    if path.stem in EXTRAS:
        pytest.importorskip(EXTRAS[path.stem])
    import matplotlib

    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHSC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    namespace: dict[str, object] = {"__name__": "__notebook__"}
    for cell in cells_of(path, "code"):
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(path), "eval"), namespace)
            assert getattr(value, "_repr_html_", value.__repr__)() is not None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_notebook_is_stored_as_executed(path: Path) -> None:
    cells = cells_of(path, "code")
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_outputs_have_no_path_of_a_machine(path: Path) -> None:
    outputs = json.dumps([cell["outputs"] for cell in cells_of(path, "code")])
    assert not re.search(r"/(home|root|tmp|work|usr)/|site-packages", outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_links_of_notebook_exist(path: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in cells_of(path, "markdown"))
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://")]
    assert [link for link in links if not (path.parent / link.partition("#")[0]).resolve().exists()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_notebook_is_a_page_in_the_navigation(path: Path) -> None:
    assert f": notebooks/{path.stem}.md\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_page_has_text_code_and_outputs() -> None:
    page_of = runpy.run_path(str(ROOT / "mkdocs_notebooks.py"))["page_of"]
    outputs = [
        {"output_type": "stream", "text": ["a\n", "b\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["x"], "text/html": ["<p>\n", "\n</p>"]}},
        {"output_type": "display_data", "data": {"text/plain": ["<Figure>"], "image/png": "AAA\n"}},
    ]
    notebook = {
        "cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "\n", "Words."]},
            {"cell_type": "code", "source": ["1 + 1"], "outputs": outputs},
        ]
    }
    assert page_of(notebook, "x.ipynb") == (
        "# Title\n\n[The notebook](x.ipynb), to download and run.\n\nWords.\n\n"
        "```python\n1 + 1\n```\n\n```text\na\nb\n```\n\n"
        '<div class="notebook-output"><p>  </p></div>\n\n'
        '<img alt="&lt;Figure&gt;" src="data:image/png;base64,AAA">\n'
    )
