"""The cluster page and the Dockerfile: scripts parse, options exist, install lines are the README's."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from graphsc.cli.main import app

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"^``` { .bash .no-run }\n(.*?)^```$", PAGE, re.M | re.S)
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def words_of(script: str) -> list[list[str]]:
    lines = script.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if "graphsc" in line]


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_valid_bash(script: str) -> None:
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


COMMANDS = [
    words[words.index("graphsc") + 1 :]
    for script in SCRIPTS
    for words in words_of(script)
    if "graphsc" in words and words[:2] != ["docker", "build"]
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_commands_on_clusters_have_options_that_exist(arguments: list[str]) -> None:
    # What the shell would fill in.
    filled = [re.sub(r"\$\{?\w+\}?", "7", argument) for argument in arguments]
    app.parse_args(filled, print_error=False, exit_on_error=False)


def test_page_has_each_kind_of_script() -> None:
    assert [verb for verb, *_ in COMMANDS] == ["train", "evaluate", "pretrain", "reproduce", "train"]


def installs_of(text: str) -> list[list[str]]:
    """What follows `pip install`, without options of the image."""
    lines = re.findall(r"^(?:RUN )?(pip install .*)$", text, re.M)
    return [
        [word for word in shlex.split(line, comments=True)[2:] if word != "--no-cache-dir"] for line in lines
    ]


def test_install_lines_of_the_dockerfile_are_those_of_the_readme() -> None:
    installs = installs_of(DOCKERFILE)
    assert installs
    assert [line for line in installs if line not in installs_of(README)] == []


def test_python_of_the_dockerfile_is_one_that_is_declared() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (version,) = re.findall(r"^FROM python:(3\.\d+)-slim$", DOCKERFILE, re.M)
    assert f"Python :: {version}" in project


def test_dockerfile_has_only_known_instructions_and_no_shell_traps() -> None:
    """What a linter would ask for: one file set, no root at run time, exec form, no leftover cache of pip."""
    lines = [line for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
    instructions = [line.split()[0] for line in lines]
    assert set(instructions) <= {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}
    assert instructions.index("USER") < instructions.index("ENTRYPOINT")
    assert all("--no-cache-dir" in line for line in lines if "pip install" in line)
    assert all("[" in line for line in lines if line.startswith(("ENTRYPOINT", "CMD")))
