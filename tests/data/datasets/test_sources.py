import pytest

from graphsc.core.errors import ConfigError
from graphsc.data.datasets.sources import is_union, parse_sources


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("moses:1,zinc250k:3", [("moses", 1.0), ("zinc250k", 3.0)]),
        ("moses, zinc250k:0.5", [("moses", 1.0), ("zinc250k", 0.5)]),
        ("zinc250k:3", [("zinc250k", 3.0)]),
        ("moses", [("moses", 1.0)]),
        ("motifs:500", [("motifs:500", 1.0)]),
        ("missing.smi", [("missing.smi", 1.0)]),
    ],
)
def test_sources_and_weights(text, expected):
    assert parse_sources(text) == expected


def test_a_file_with_a_comma_in_its_name_is_one_source(tmp_path):
    path = tmp_path / "a,b.smi"
    path.write_text("CCO\n")
    assert parse_sources(str(path)) == [(str(path), 1.0)]
    assert not is_union(str(path))
    assert parse_sources(f"{tmp_path / 'a,b.smi'}:2") != [(str(path), 1.0)]


def test_only_several_sources_or_a_weight_make_a_union():
    assert is_union("moses,zinc250k")
    assert is_union("zinc250k:3")
    assert not is_union("moses")
    assert not is_union("motifs:500")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("moses:0,zinc250k", "positive number"),
        ("moses:many,zinc250k", "positive number"),
        ("moses:-1,zinc250k:1", "positive number"),
        ("moses,MOSES:2", "named twice"),
        ("moses,", "no name"),
    ],
)
def test_wrong_weights_and_names_are_refused(text, words):
    with pytest.raises(ConfigError, match=words):
        parse_sources(text)
