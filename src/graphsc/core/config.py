"""Settings from outside: read safely, checked against the constructor they are for.

A constructor's typed keywords *are* the schema; ranges are the constructor's own to check.
"""

from __future__ import annotations

import inspect
import json
import os
import typing
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import yaml

from graphsc.core.errors import ConfigError, GraphscError
from graphsc.core.registry import nearest

T = TypeVar("T")

SIZE_CAP = 1_000_000  # bytes; a config is a page, not a data set
DEPTH_CAP = 50  # levels of nesting; keeps the parser off the recursion limit


class _Loader(yaml.SafeLoader):
    """SafeLoader that also refuses aliases (a few lines can expand to gigabytes) and doubled keys."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(
                None, None, "aliases are not allowed here", event.start_mark
            )
        self.depth += 1
        if self.depth > DEPTH_CAP:
            raise yaml.composer.ComposerError(
                None, None, f"nested deeper than {DEPTH_CAP} levels", self.peek_event().start_mark
            )
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
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


def parse_yaml(text: str | bytes, where: str) -> object:
    """The value of one YAML document; plain data only, whatever its tags ask for."""
    if len(text) > SIZE_CAP:
        raise ConfigError(f"config is larger than {SIZE_CAP:,} bytes", where=where)
    try:
        # A SafeLoader: it builds dicts, lists, strings and numbers and nothing else.
        return yaml.load(text, Loader=_Loader)  # noqa: S506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is not None:
            where = f"{where}, line {mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"not a valid config: {problem}", where=where) from error
    except ValueError as error:  # a timestamp or number that looks right and is not
        raise ConfigError(f"not a valid config: {error}", where=where) from error


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


def check_arguments(target: Callable[..., object], values: Mapping[str, object], name: str) -> None:
    """Check `values` against the typed keywords of `target`, naming the first wrong key."""
    import pydantic  # here: it costs a tenth of a second that `graphsc --help` need not pay

    function = target.__init__ if inspect.isclass(target) else target  # type: ignore[misc]
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = [
        parameter
        for parameter in inspect.signature(target).parameters.values()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    valid = [parameter.name for parameter in parameters]
    for key in values:
        if key not in valid:
            raise ConfigError(f"{name} has no setting {key!r}", hint=nearest(key, valid))
    fields: dict[str, typing.Any] = {
        parameter.name: (
            hints.get(parameter.name, object),
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in parameters
    }
    model = pydantic.create_model(
        "Settings",
        __config__=pydantic.ConfigDict(
            strict=True, allow_inf_nan=False, arbitrary_types_allowed=True, protected_namespaces=()
        ),
        **fields,
    )
    try:
        # Through JSON, because strict JSON takes a list for a tuple and nothing else for anything.
        model.model_validate_json(json.dumps(dict(values), default=str))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"][:1])
        problem = first["msg"][:1].lower() + first["msg"][1:]
        if first["type"] != "missing":
            problem += f", not {first['input']!r}"
        raise ConfigError(f"{name}: setting {key!r}: {problem}") from error


def build(target: Callable[..., T], values: Mapping[str, object], name: str) -> T:
    """Call `target` with settings from outside, after checking each."""
    check_arguments(target, values, name)
    hints = typing.get_type_hints(
        target.__init__ if inspect.isclass(target) else target  # type: ignore[misc]
    )
    arguments = {
        key: tuple(value)
        if isinstance(value, list) and "tuple" in str(hints.get(key, ""))
        else value
        for key, value in values.items()
    }
    try:
        return target(**arguments)
    except GraphscError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from error


def dump_yaml(values: Mapping[str, object]) -> str:
    """Settings as YAML in the order given, readable by `read_config`."""
    text: str = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True)
    return text

