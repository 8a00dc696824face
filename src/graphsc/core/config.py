"""Settings from outside: read safely, checked against the constructor they are for.

A constructor's typed keywords *are* the schema; ranges are the constructor's own to check.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import typing
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NoReturn, TypeVar

import yaml

from graphsc.core.errors import ConfigError, GraphscError
from graphsc.core.registry import nearest

if TYPE_CHECKING:
    import pydantic

T = TypeVar("T")

SIZE_CAP = 1_000_000  # bytes; a config is a page, not a data set
DEPTH_CAP = 50  # levels of nesting; keeps the parser off the recursion limit


# YAML 1.1 wants a dot and a sign in `1.0e-3`; people write `1e-3`, and mean a number.
_FLOAT = re.compile(r"^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)[eE][-+]?[0-9]+$")


class _Loader(yaml.SafeLoader):
    """SafeLoader that also refuses aliases (a few lines can expand to gigabytes) and doubled keys."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            self._refuse("aliases are not allowed here")
        self.depth += 1
        if self.depth > DEPTH_CAP:
            self._refuse(f"nested deeper than {DEPTH_CAP} levels")
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def _refuse(self, problem: str) -> NoReturn:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        raise yaml.composer.ComposerError(None, None, problem, event.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is not a word", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} appears twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


class _Dumper(yaml.SafeDumper):
    """SafeDumper that writes a value used twice out twice, since `_Loader` takes no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


for _side in (_Loader, _Dumper):
    _side.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def parse_yaml(text: str | bytes, where: str) -> object:
    """The value of one YAML document; plain data only, whatever its tags ask for."""
    if len(text) > SIZE_CAP:
        raise ConfigError(f"config is larger than {SIZE_CAP:,} bytes", where=where)
    try:
        # A SafeLoader: it builds dicts, lists, strings and numbers and nothing else.
        return yaml.load(text, Loader=_Loader)  # noqa: S506  # nosec B506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is not None:
            where = f"{where}, line {mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"not a valid config: {problem}", where=where) from error
    except ValueError as error:  # a timestamp or number that looks right and is not
        raise ConfigError(f"not a valid config: {error}", where=where) from error
    except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
        # How PyYAML answers `!!int ""`, `!!bool x` and the like.
        raise ConfigError("not a valid config: a value is not what its tag says", where=where) from error


def read_config(path: str | os.PathLike[str]) -> dict[str, object]:
    """Read a YAML file whose top level is a mapping."""
    try:
        with open(path, "rb") as file:
            text = file.read(SIZE_CAP + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read config: {error.strerror}", where=str(path), hint="check the path"
        ) from error
    values = parse_yaml(text, str(path))
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError("the top level of a config must be `key: value` lines", where=str(path))
    return values


def parse_assignments(assignments: list[str]) -> dict[str, object]:
    """`["rate=0.2", "norm=batch"]` to values, as YAML would read each right-hand side."""
    values: dict[str, object] = {}
    for assignment in assignments:
        key, sign, text = assignment.partition("=")
        if not sign or not key.strip():
            raise ConfigError(f"{assignment!r} is not of the form key=value")
        values[key.strip()] = parse_yaml(text, f"value of {key.strip()}")
    return values


def check_arguments(
    target: Callable[..., object],
    values: Mapping[str, object],
    name: str,
    given: Collection[str] = (),
) -> dict[str, object]:
    """Check `values` against the typed keywords of `target`, naming the first wrong key.

    Parameters in `given` are passed by the program itself and cannot be set from outside. Returns the
    values as `target` wants them: tuples where it says tuple, floats where it says float.
    """
    import pydantic  # here: it costs a tenth of a second that `graphsc --help` need not pay

    hints, keywords = _keywords(target)
    parameters = {key: parameter for key, parameter in keywords.items() if key not in given}
    for key in values:
        if key not in parameters:
            raise ConfigError(f"{name} has no setting {key!r}", hint=nearest(key, parameters))
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in values:
            raise ConfigError(f"{name}: setting {key!r} is required")
    checked: dict[str, object] = {}
    for key, value in values.items():
        try:
            # Through JSON, because strict JSON takes a list for a tuple and nothing else for anything.
            checked[key] = _adapter(hints.get(key, object)).validate_json(json.dumps(value, default=str))
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            problem = first["msg"][:1].lower() + first["msg"][1:]
            raise ConfigError(f"{name}: setting {key!r}: {problem}, not {first['input']!r}") from error
        except ValueError as error:  # what JSON cannot write, such as a number of 5,000 digits
            raise ConfigError(f"{name}: setting {key!r}: {error}") from error
    return checked


@cache
def _keywords(target: Callable[..., object]) -> tuple[dict[str, typing.Any], dict[str, inspect.Parameter]]:
    """The types and the parameters of a constructor or function."""
    function = target.__init__ if inspect.isclass(target) else target
    parameters = {
        parameter.name: parameter
        for parameter in inspect.signature(target).parameters.values()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }
    return typing.get_type_hints(function, include_extras=True), parameters


@cache
def _adapter(hint: typing.Any) -> pydantic.TypeAdapter[object]:
    """What checks values of one type; made once, because a table asks for the same few thousands of times."""
    import pydantic

    config = pydantic.ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    return pydantic.TypeAdapter[object](hint, config=config)


def build(target: Callable[..., T], values: Mapping[str, object], name: str) -> T:
    """Call `target` with settings from outside, after checking each."""
    arguments = check_arguments(target, values, name)
    try:
        return target(**arguments)
    except GraphscError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from error


def dump_yaml(values: Mapping[str, object]) -> str:
    """Settings as YAML in the order given, readable by `read_config`."""
    text: str = yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text
