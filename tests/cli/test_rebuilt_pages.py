"""What the documentation shows of the paper is what the stored results give."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REBUILDS = re.findall(r"graphsc (reproduce .* --no-run --page docs/.*)", (ROOT / "Makefile").read_text())


@pytest.mark.parametrize("command", REBUILDS)
def test_what_make_rebuilds_is_what_the_documentation_holds(run, command, tmp_path):
    """No number is typed in: the commands of `make results` leave the page as it is."""
    *words, page = shlex.split(command)
    shutil.copy(ROOT / page, tmp_path / "page.md")
    code, out, err = run(*words, tmp_path / "page.md", "--results", ROOT / "results")
    assert code == 0, err
    assert "nothing has changed" in out
