"""What is built for a package index: links that lead somewhere, and a source archive whose tests can run."""

from __future__ import annotations

import importlib.metadata
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
TARGET = re.compile(r'\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"')
REPOSITORY = "https://forge.example/graphsc"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def metadata(built: Path) -> Message:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return message_from_bytes(archive.read(name))


def targets_of(text: str) -> list[str]:
    return [one or other for one, other in TARGET.findall(text)]


def test_description_on_an_index_has_no_relative_links(metadata: Message) -> None:
    description = str(metadata.get_payload())
    assert "# GraphSC" in description
    assert [target for target in targets_of(description) if not target.startswith("https://")] == []


def test_links_lead_to_files_of_the_repository_where_it_has_an_address() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    package_readme = runpy.run_path(str(ROOT / "hatch_build.py"))["package_readme"]
    files = [target for target in targets_of(readme) if not target.startswith("https://")]
    absolute = targets_of(package_readme(readme, REPOSITORY))
    leading = [target for target in absolute if target.startswith(REPOSITORY)]
    assert [re.sub(rf"^{REPOSITORY}/(blob|raw)/HEAD/", "", target) for target in leading] == files
    assert [target for target in leading if "/raw/" in target] == [
        f"{REPOSITORY}/raw/HEAD/docs/images/report.png"
    ]


def test_index_shows_the_paper(metadata: Message) -> None:
    assert metadata.get_all("Project-URL") == ["Paper, https://arxiv.org/abs/2309.02304"]


def test_every_declared_python_has_its_classifier(metadata: Message) -> None:
    lowest, beyond = sorted(int(minor) for minor in re.findall(r"3\.(\d+)", str(metadata["Requires-Python"])))
    listed = [line for line in metadata.get_all("Classifier", []) if "Python :: 3." in line]
    assert listed == [f"Programming Language :: Python :: 3.{minor}" for minor in range(lowest, beyond)]


def test_source_archive_has_every_file_of_the_repository(built: Path) -> None:
    """So that its tests, which read docs, results and benchmarks, collect and pass."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a checkout of git")
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        packed = {name.partition("/")[2] for name in tar.getnames()}
    assert {name for name in listing.stdout.split("\n") if name and (ROOT / name).exists()} - packed == set()


def test_base_installation_has_what_the_examples_need(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "graphsc/data/datasets/mutag.safetensors" in archive.namelist()


BLOCK = """
import sys
from importlib.machinery import PathFinder


class BaseFinder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in REFUSED else super().find_spec(name, path, target)


# Also drops the finder of an editable installation.
sys.meta_path[:] = [*sys.meta_path[: sys.meta_path.index(PathFinder)], BaseFinder]
import graphsc
import numba
from graphsc.cli.main import run

assert graphsc.__file__.startswith(WHEEL), graphsc.__file__
for command in COMMANDS:
    code = run(command.split())
    assert code == 0, (command, code)
"""


def base_packages() -> set[str]:
    """The base dependencies and theirs, by normalised name, as installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [Requirement(text) for text in project["dependencies"]]
    found: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += [Requirement(text) for text in importlib.metadata.requires(name) or []]
    return found


def test_the_first_commands_of_the_readme_need_the_base_installation_alone(
    built: Path, tmp_path: Path
) -> None:
    """The wheel, unpacked, with every other package that is installed here refused."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    base = base_packages()
    assert {"torch", "numpy", "scikit-learn", "torch-geometric"} < base
    assert not {"rdkit", "pandas", "pyarrow", "grakel", "dask"} & base
    refused = {
        module
        for module, names in importlib.metadata.packages_distributions().items()
        if not {canonicalize_name(name) for name in names} & {*base, "graphsc", "setuptools"}
    }
    assert {"rdkit", "pandas"} & refused  # else there is nothing to refuse
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^```console\n(graphsc train mutag .*?)^```$", readme, re.M | re.S)
    lines = [line.partition("#")[0].removeprefix("graphsc ").strip() for line in commands.splitlines()]
    values = f"REFUSED = {refused!r}\nWHEEL = {str(tmp_path / 'wheel')!r}\nCOMMANDS = {lines!r}\n"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GRAPHSC_")}
    subprocess.run(
        [sys.executable, "-c", values + BLOCK],
        cwd=tmp_path,
        check=True,
        # Without compiled loops, which would be compiled anew for this copy.
        env={**environment, "PYTHONPATH": str(tmp_path / "wheel"), "GRAPHSC_COMPILED": "0"},
    )
    assert (tmp_path / "embeddings.csv").exists()


def test_extras_are_those_that_errors_name() -> None:
    from graphsc.core.registry import EXTRA_OF

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRA_OF.values()) == set(project["optional-dependencies"]) - {"dev", "all"}
