import math
from contextlib import suppress
from typing import Literal

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core import config
from graphsc.core.config import (
    build,
    check_arguments,
    dump_yaml,
    parse_assignments,
    parse_yaml,
    read_config,
)
from graphsc.core.errors import ConfigError, DataError


class View:
    def __init__(
        self,
        *,
        rate: float = 0.2,
        hops: int = 1,
        kind: Literal["node", "edge"] = "node",
        sides: tuple[float, float] = (0.1, 0.2),
        pairs: list[tuple[int, int]] | None = None,
        name: str = "",
        exact: bool = False,
        copy: bool = False,
    ) -> None:
        if not 0 <= rate <= 1:
            raise ValueError(f"rate must be between 0 and 1, not {rate}")
        self.arguments = {k: v for k, v in locals().items() if k != "self"}


def built(**values):
    return build(View, values, "view 'drop'").arguments


def refusal(**values):
    with pytest.raises(ConfigError) as caught:
        build(View, values, "view 'drop'")
    return str(caught.value)


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "config.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


class TestBuild:
    def test_values_reach_the_constructor(self):
        arguments = built(rate=0.5, hops=3, kind="edge", name="x", exact=True)
        assert arguments == {
            "rate": 0.5,
            "hops": 3,
            "kind": "edge",
            "sides": (0.1, 0.2),
            "pairs": None,
            "name": "x",
            "exact": True,
            "copy": False,
        }

    def test_an_unknown_key_names_the_nearest(self):
        assert refusal(raet=0.5).startswith("view 'drop' has no setting 'raet'; did you mean 'rate'?")

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("rate", "0.5"),
            ("rate", True),
            ("rate", None),
            ("rate", [0.5]),
            ("hops", 1.5),
            ("hops", 1.0),
            ("hops", "1"),
            ("hops", False),
            ("kind", "graph"),
            ("sides", [0.1]),
            ("sides", [0.1, "b"]),
            ("sides", 0.1),
            ("name", 3),
            ("exact", 1),
            ("exact", "yes"),
        ],
    )
    def test_a_wrong_type_names_the_key_and_the_value(self, key, value):
        message = refusal(**{key: value})
        assert f"setting {key!r}" in message
        assert "not" in message

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_a_number_that_is_not_finite_is_refused(self, value):
        assert "setting 'rate': input should be a finite number" in refusal(rate=value)

    def test_a_number_of_many_digits_is_refused(self):
        assert "setting 'hops'" in refusal(hops=int("f" * 5000, 16))

    def test_a_list_is_converted_to_a_tuple(self):
        assert built(sides=[0.3, 0.4])["sides"] == (0.3, 0.4)

    def test_lists_inside_a_list_are_converted_to_tuples(self):
        assert built(pairs=[[1, 2], [3, 4]])["pairs"] == [(1, 2), (3, 4)]

    def test_an_integer_is_converted_to_a_float(self):
        assert isinstance(built(rate=1)["rate"], float)

    def test_a_date_is_converted_to_its_text(self):
        assert built(**parse_yaml("name: 2020-01-31", "here"))["name"] == "2020-01-31"

    @pytest.mark.filterwarnings("error")
    def test_a_setting_may_have_any_name(self):
        assert built(copy=True)["copy"] is True

    def test_a_value_out_of_range_is_refused_by_the_constructor(self):
        assert refusal(rate=1.5) == "view 'drop': rate must be between 0 and 1, not 1.5"

    def test_a_graphsc_error_passes_unchanged(self):
        def refuse() -> None:
            raise DataError("no graphs")

        with pytest.raises(DataError, match="no graphs"):
            build(refuse, {}, "reader")

    def test_a_missing_required_setting_is_named(self):
        def read(path: str, limit: int = 3) -> None: ...

        with pytest.raises(ConfigError, match="reader: setting 'path' is required"):
            build(read, {"limit": 4}, "reader")

    def test_a_parameter_passed_by_the_program_is_no_setting(self):
        def read(source: str, limit: int = 3) -> None: ...

        assert check_arguments(read, {"limit": 4}, "reader", given=("source",)) == {"limit": 4}
        with pytest.raises(ConfigError, match="reader has no setting 'source'; valid: limit"):
            check_arguments(read, {"source": "x"}, "reader", given=("source",))

    def test_a_class_without_a_constructor_takes_no_settings(self):
        class Plain:
            pass

        assert isinstance(build(Plain, {}, "plain"), Plain)
        with pytest.raises(ConfigError, match="plain has no setting 'a'"):
            build(Plain, {"a": 1}, "plain")


TAGS = ["int", "float", "bool", "null", "timestamp", "binary", "str", "map", "seq", "set", "omap", "pairs"]
FRAGMENTS = [f"!!{tag} " for tag in TAGS]
FRAGMENTS += [*"{}[],'\"\n\t#=~a+", "!x ", "&a ", "*a", "? ", ": ", "- ", "  ", "|\n", ">\n", "''", "<<: "]
FRAGMENTS += ["\\x", "%YAML 1.1\n", "%TAG ! x\n", "--- ", "...\n"]
FRAGMENTS += ["1e5", "0x", "0b", "1:2", "2001-01-01", "2001-01-01T00:00:00+99:00"]


class TestReading:
    def test_a_file_of_plain_values_is_read(self, write):
        path = write("rate: 0.5\nnames: [a, b]\nnone: null\nnested:\n  deep: true\n")
        assert read_config(path) == {
            "rate": 0.5,
            "names": ["a", "b"],
            "none": None,
            "nested": {"deep": True},
        }

    def test_an_empty_file_sets_nothing(self, write):
        assert read_config(write("# nothing yet\n")) == {}

    @pytest.mark.parametrize("text", ["1e-3", "1E-3", "1.0e-3", "+1e-3", ".1e-2", "0.001", "10e-4"])
    def test_a_number_with_an_exponent_is_a_number(self, text):
        assert parse_yaml(text, "here") == 0.001

    @pytest.mark.parametrize("text", ["1e", "e3", "v1e3", "1e3x", "1e-", "'1e3'"])
    def test_text_similar_to_an_exponent_is_text(self, text):
        assert parse_yaml(text, "here") == text.strip("'")

    @pytest.mark.parametrize("text", ["- a\n- b\n", "just words", "3"])
    def test_a_top_level_other_than_a_mapping_is_refused(self, write, text):
        with pytest.raises(ConfigError, match="top level of a config"):
            read_config(write(text))

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(ConfigError, match=r"cannot read config: No such file .*nowhere\.yaml"):
            read_config(tmp_path / "nowhere.yaml")

    def test_a_folder_is_not_a_config(self, tmp_path):
        with pytest.raises(ConfigError, match="cannot read config"):
            read_config(tmp_path)

    @pytest.mark.parametrize(
        "tag",
        [
            "!!python/object/apply:os.mkdir",
            "!!python/object/new:os.mkdir",
            "!!python/object/apply:subprocess.check_call",
        ],
    )
    def test_a_python_object_is_refused_and_not_run(self, write, tmp_path, tag):
        path = write(f"a: {tag} ['{tmp_path / 'created'}']\n")
        with pytest.raises(ConfigError, match="line 1"):
            read_config(path)
        assert not (tmp_path / "created").exists()

    def test_an_alias_bomb_is_refused(self, write):
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
        with pytest.raises(ConfigError, match=r"aliases are not allowed here .*line 2"):
            read_config(write("\n".join(lines)))

    def test_a_duplicate_key_is_refused(self, write):
        with pytest.raises(ConfigError, match=r"key 'rate' appears twice .*line 3"):
            read_config(write("rate: 1\nhops: 2\nrate: 3\n"))

    def test_a_nested_duplicate_key_is_refused(self, write):
        with pytest.raises(ConfigError, match="key 'b' appears twice"):
            read_config(write("a: [{b: 1, b: 2}]"))

    def test_a_key_that_is_not_a_string_is_refused(self, write):
        with pytest.raises(ConfigError, match="key 3 is not a word"):
            read_config(write("3: x"))

    def test_an_oversize_file_is_refused(self, write):
        with pytest.raises(ConfigError, match="larger than 1,000,000 bytes"):
            read_config(write("a: " + "x" * config.SIZE_CAP))

    @pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
    def test_deep_nesting_is_refused(self, write, opening):
        with pytest.raises(ConfigError, match="nested deeper than 50 levels"):
            read_config(write(opening * 5000))

    @pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a: \x00", b"\x80abc", b"a: \x07"])
    def test_bytes_that_are_not_text_are_refused(self, write, content):
        with pytest.raises(ConfigError, match="not a valid config"):
            read_config(write(content))

    @pytest.mark.parametrize(
        "text",
        [
            'a: !!int ""',
            'a: !!float ""',
            "a: !!bool x",
            "a: !!timestamp x",
            "a: 2020-02-31",
            "!!map [a]",
            "!!set [a]",
            "!!map ab",
            "a: !!omap 3",
            "a: 0x_",
            "<<: {a: 1}",
            "a: " + "1:" * 300 + "1.5",
            "a: " + "9" * 5000,
        ],
    )
    def test_a_value_that_does_not_match_its_tag_is_refused(self, text):
        with pytest.raises(ConfigError, match="not a valid config"):
            parse_yaml(text, "here")

    @given(st.text())
    def test_any_text_is_read_or_refused_as_a_config(self, text):
        with suppress(ConfigError):
            parse_yaml(text, "here")

    @given(st.text(alphabet="!&*{}[]:,-?|>'\"%@#= \n\tabe0123456789._<~", max_size=60))
    def test_any_punctuation_is_read_or_refused_as_a_config(self, text):
        with suppress(ConfigError):
            parse_yaml(text, "here")

    @given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
    def test_any_mix_of_yaml_fragments_is_read_or_refused_as_a_config(self, text):
        with suppress(ConfigError):
            parse_yaml(text, "here")

    @given(st.binary())
    def test_any_bytes_are_read_or_refused_as_a_config(self, content):
        with suppress(ConfigError):
            parse_yaml(content, "here")


class TestAssignments:
    def test_the_right_hand_side_is_read_as_yaml(self):
        given = ["rate=0.2", "norm = batch", "sides=[1, 2]", "lr=1e-3", "path=a=b", "none="]
        assert parse_assignments(given) == {
            "rate": 0.2,
            "norm": "batch",
            "sides": [1, 2],
            "lr": 0.001,
            "path": "a=b",
            "none": None,
        }

    @pytest.mark.parametrize("text", ["rate", "=3", "  =3", ""])
    def test_an_invalid_assignment_is_refused(self, text):
        with pytest.raises(ConfigError, match="is not of the form key=value"):
            parse_assignments([text])

    def test_an_unreadable_value_names_its_key(self):
        with pytest.raises(ConfigError, match="value of rate"):
            parse_assignments(["rate=[1"])


# PyYAML itself folds these three line breaks of Unicode into others.
TEXT = st.text(st.characters(exclude_characters="\x85\u2028\u2029"), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | TEXT
    | st.sampled_from(["1e-3", "1e5", "no", "null", "~", "0x1f", "1:30", "2020-01-01", "=", "<<", ".5"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


class TestRoundTrip:
    @given(values=st.dictionaries(TEXT, VALUES, max_size=4))
    def test_dumped_values_are_read_back(self, values):
        assert parse_yaml(dump_yaml(values), "here") == (values or {})

    @given(value=SCALARS)
    def test_types_survive(self, value):
        assert type(parse_yaml(dump_yaml({"a": value}), "here")["a"]) is type(value)

    def test_order_is_kept(self, write):
        assert list(read_config(write(dump_yaml({"z": 1, "a": 2, "m": 3})))) == ["z", "a", "m"]

    def test_a_value_used_twice_is_read_back(self, write):
        shared = [1, 2]
        path = write(dump_yaml({"a": shared, "b": shared, "c": (shared, shared)}))
        assert read_config(path) == {"a": [1, 2], "b": [1, 2], "c": [[1, 2], [1, 2]]}

    def test_any_other_yaml_reader_sees_the_same(self):
        values = {"rate": 1e-05, "names": ["é", "no", "1.5"], "deep": {"a": None}}
        assert yaml.safe_load(dump_yaml(values)) == values


def test_numbers_of_numpy_are_settings():
    def target(count: int, rate: float, flag: bool, name: str, sizes: tuple[int, ...], more: dict[str, int]):
        return count, rate, flag, name, sizes, more

    values = {
        "count": np.int64(3), "rate": np.float32(0.5), "flag": np.True_, "name": np.str_("x"),
        "sizes": np.array([1, 2]), "more": {"a": np.int8(1)},
    }  # fmt: skip
    checked = check_arguments(target, values, "target")
    assert list(checked.values()) == [3, 0.5, True, "x", (1, 2), {"a": 1}]
    kinds = [int, float, bool, str, tuple, dict]
    assert [type(value) for value in checked.values()] == kinds
    assert yaml.safe_load(dump_yaml(values)) == {**checked, "sizes": [1, 2]}


@pytest.mark.parametrize("value", [np.float64(1.5), np.array([1, 2]), np.array("x"), np.float32("nan")])
def test_a_wrong_kind_of_numpy_value_is_refused(value):
    def target(count: int):
        return count

    with pytest.raises(ConfigError, match="setting 'count'"):
        check_arguments(target, {"count": value}, "target")
