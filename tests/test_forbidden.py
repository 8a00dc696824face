"""No line of the package can execute the contents of a file, except of one it has just written itself."""

import re
from pathlib import Path

import pytest

from graphsc.core import parallel
from graphsc.core.errors import GraphscError

SOURCE = Path(__file__).parents[1] / "src"
FILES = sorted(SOURCE.rglob("*.py"))

# Forbidden patterns, each with the one file where it is allowed. Messages between processes of a command are
# pickles, and large ones go through files, whose hash is in the message.
FORBIDDEN = {
    r"pickle\.loads?\b": "graphsc/core/parallel.py",
    r"\bimport pickle\b|from pickle import": "graphsc/core/parallel.py",
    r"\bUnpickler\b": None,
    r"\b(joblib|dill|cloudpickle|marshal)\.loads?\b": None,
    r"weights_only\s*=\s*False": None,
    r"torch\.load\b": None,
    r"allow_pickle\s*=\s*True": None,
    r"\byaml\.(unsafe_load|full_load|load_all|unsafe_load_all|UnsafeLoader|FullLoader|Loader)\b": None,
    r"\byaml\.load\(": "graphsc/core/config.py",
    r"(?<![\w.])eval\(": None,
    r"(?<![\w.])exec\(": None,
    r"(?<![\w.])__import__\(": None,
    r"shell\s*=\s*True": None,
    r"\bos\.(system|popen)\(": None,
}


def lines_with(pattern: str) -> list[str]:
    return [
        f"{path.relative_to(SOURCE).as_posix()}:{number}"
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(pattern, line)
    ]


def test_the_sources_were_found():
    assert SOURCE / "graphsc" / "core" / "config.py" in FILES


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_it_is_written_nowhere_else(pattern):
    allowed = FORBIDDEN[pattern]
    lines = [line for line in lines_with(pattern) if allowed is None or not line.startswith(f"{allowed}:")]
    assert lines == []


def test_the_one_yaml_load_is_of_a_safe_loader():
    text = (SOURCE / "graphsc" / "core" / "config.py").read_text()
    assert re.findall(r"yaml\.load\((.*?)\)", text) == ["text, Loader=_Loader"]
    assert "class _Loader(yaml.SafeLoader):" in text


def test_the_one_unpickling_is_of_a_message_with_the_right_hash(tmp_path):
    message = parallel._to_file(b"x" * 10_000, tmp_path)
    assert parallel._from_file(message) == b"x" * 10_000
    message = parallel._to_file(b"x" * 10_000, tmp_path)
    message.path.write_bytes(message.path.read_bytes().replace(b"xxx", b"xyx", 1))
    with pytest.raises(GraphscError, match="was changed on its way"):
        parallel._from_file(message)
    text = (SOURCE / "graphsc" / "core" / "parallel.py").read_text()
    assert len(re.findall(r"pickle\.loads?\b", text)) == 1
