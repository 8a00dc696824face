"""The page "What is public" and the packages promise the same names, and documentation uses no others."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import graphsc

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.ipynb")),
]
# A line of a page, or of the JSON of a notebook.
IMPORT = re.compile(r'^ *"?from (graphsc[\w.]*) import (?:\(([^)]*)\)|([\w, ]*))', re.M)
PAGE = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
# The names of each package, as the page has them.
DOCUMENTED = {
    match[1]: set(re.findall(r"`(\w+)`", match[2]))
    for match in re.finditer(r"^\| `(graphsc[\w.]*)` \| [^|]* \| (.*) \|$", PAGE, re.M)
}
PRIVATE = {"graphsc.cli", "graphsc.paper"}  # as the page says


@pytest.mark.parametrize("package", DOCUMENTED)
def test_documented_names_are_those_of_the_package(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) - {"__version__"} == DOCUMENTED[package]
    assert [name for name in DOCUMENTED[package] if not hasattr(module, name)] == []


def test_every_package_is_documented() -> None:
    found = pkgutil.walk_packages(graphsc.__path__, "graphsc.")
    packages = {module.name for module in found if module.ispkg}
    assert {name for name in packages if not name.startswith(tuple(PRIVATE))} | {"graphsc"} == set(DOCUMENTED)


@pytest.mark.parametrize("package", DOCUMENTED)
def test_dir_lists_public_names_and_packages(package: str) -> None:
    module = importlib.import_module(package)
    below = {name.removeprefix(f"{package}.") for name in DOCUMENTED if name.startswith(f"{package}.")}
    packages = {name for name in below if "." not in name}
    assert set(dir(module)) == {*module.__all__, *packages}


@pytest.mark.parametrize("package", DOCUMENTED)
def test_type_checkers_see_the_names_that_are_imported_on_first_use(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    assert seen == module._homes


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_imports_public_names_only(page: Path) -> None:
    others = []
    for module, several, one in IMPORT.findall(page.read_text(encoding="utf-8")):
        names = re.findall(r"\w+", several or one)
        others += [f"{module}.{name}" for name in names if name not in DOCUMENTED.get(module, set())]
    assert not others, "import it from a package of docs/public.md, or add it there and to the package"


def test_a_function_keeps_the_name_of_its_module_in_any_order_of_imports() -> None:
    program = (
        "import graphsc.finetuning.finetune, graphsc.training\n"
        "from graphsc.training import train\n"
        "from graphsc.training.train import Run\n"
        "from graphsc.training import train as again\n"
        "from graphsc.finetuning import finetune\n"
        "assert train is again and callable(train) and callable(finetune)\n"
        "assert train.__module__ == 'graphsc.training.train'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_listing_every_package_imports_no_torch() -> None:
    lazy = [
        name
        for name in DOCUMENTED
        if name.split(".")[1:2] not in (["views"], ["encoders"], ["losses"], ["methods"])
    ]
    program = f"import sys, importlib\nfor name in {lazy}: dir(importlib.import_module(name))\n"
    program += "sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'graphsc\.training' has no attribute 'trian'"):
        _ = graphsc.training.trian  # type: ignore[attr-defined]
