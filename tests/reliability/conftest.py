"""The command line in this process, a run to be hurt, and file systems that are full or read-only."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphsc.cli import main

sys.path.insert(0, str(Path(__file__).parent))

TRAIN = ("train", "motifs:24", "--epochs", "3", "--set", "encoder.width=4", "--set", "batch_size=8")


@pytest.fixture
def run(capsys):
    """`run("data", "check", ...)` gives (exit code, stdout, stderr)."""

    def call(*arguments):
        code = main.run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    assert main.run([*TRAIN, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def trained(trained_once, tmp_path):
    """A finished run of three epochs, to be hurt at will."""
    return shutil.copytree(trained_once, tmp_path / "run")


@pytest.fixture
def mount(tmp_path):
    """`mount("size=64k")` gives a folder that is a file system of its own; `mount.again("ro", folder)`."""
    mounted = []

    def call(*arguments):
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    def make(options):
        folder = tmp_path / f"disk-{len(mounted)}"
        folder.mkdir()
        if shutil.which("mount") is None:
            pytest.skip("no file system can be mounted here: there is no mount command")
        call("-t", "tmpfs", "-o", options, "tmpfs", str(folder))
        mounted.append(folder)
        return folder

    make.again = lambda options, folder: call("-o", f"remount,{options}", str(folder))
    yield make
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
