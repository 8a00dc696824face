"""Configuration files and command-line settings, checked against the constructor that receives them.

The typed keywords of a constructor are the schema. Ranges are checked by the constructor itself.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import typing
import warnings
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NoReturn, TypeVar

import numpy as np
import yaml

from graphsc.core.errors import ConfigError, GraphscError, GraphscWarning
from graphsc.core.files import write_if_changed
from graphsc.core.registry import nearest

if TYPE_CHECKING:
    import pydantic

T = TypeVar("T")

SIZE_CAP = 1_000_000  # bytes
DEPTH_CAP = 50  # levels of nesting; keeps the parser below the recursion limit

# The first line, so that no cut leaves settings without it. No colon: without its # it is no YAML.
_HASH = b"# The lines below have the SHA-256 "

# YAML 1.1 reads `1.0e-3` as a number but `1e-3` as text.
_FLOAT = re.compile(r"^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)[eE][-+]?[0-9]+$")


class _Loader(yaml.SafeLoader):
    """SafeLoader that also rejects duplicate keys, and aliases, which can expand to gigabytes."""

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
    """SafeDumper without aliases, which `_Loader` rejects: a value used twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


for _yaml_class in (_Loader, _Dumper):
    _yaml_class.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def parse_yaml(text: str | bytes, where: str) -> object:
    """Parse one YAML document into plain data, whatever its tags; `where` is its name in error messages."""
    if len(text) > SIZE_CAP:
        raise ConfigError(f"config is larger than {SIZE_CAP:,} bytes", where=where)
    try:
        # Safe: a SafeLoader builds dicts, lists, strings and numbers only.
        return yaml.load(text, Loader=_Loader)  # noqa: S506  # nosec B506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is not None:
            where = f"{where}, line {mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"not a valid config: {problem}", where=where) from error
    except ValueError as error:  # e.g. the date 2020-02-31
        raise ConfigError(f"not a valid config: {error}", where=where) from error
    except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
        # Raised by PyYAML for `!!int ""`, `!!bool x` and the like.
        raise ConfigError("not a valid config: a value is not what its tag says", where=where) from error


def read_config(path: str | os.PathLike[str]) -> dict[str, object]:
    """Read a YAML file whose top level is a mapping.

    A file that `write_config` wrote and that has changed since is read as it is now, with a warning.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(SIZE_CAP + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read config: {error.strerror}", where=str(path), hint="check the path"
        ) from error
    values = parse_yaml(text, str(path))
    first, _, rest = text.partition(b"\n")
    if first.startswith(_HASH) and hashlib.sha256(rest).hexdigest().encode() != first.removeprefix(_HASH):
        # People may edit it, and bits may flip.
        warnings.warn(
            f"{path} was edited since it was written; its settings are used as they are now",
            GraphscWarning, stacklevel=2,
        )  # fmt: skip
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError("the top level of a config must be `key: value` lines", where=str(path))
    return values


def write_config(path: str | os.PathLike[str], values: Mapping[str, object]) -> None:
    """Write settings as YAML, atomically, after a comment with their hash; an equal file stays."""
    text = dump_yaml(values).encode()
    write_if_changed(path, b"%b%b\n%b" % (_HASH, hashlib.sha256(text).hexdigest().encode(), text))


def parse_assignments(assignments: list[str]) -> dict[str, object]:
    """Parse `["rate=0.2", "norm=batch"]`; each right-hand side is read as YAML."""
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
    """Check settings against the typed keywords of a constructor or function.

    Args:
        target: the constructor or function.
        values: the settings, as read from YAML or JSON.
        name: name of `target` in error messages.
        given: parameters that the program passes itself, which cannot be set by a user.

    Returns:
        The settings converted to the annotated types: lists to tuples, integers to floats.

    Raises:
        ConfigError: a setting is unknown, missing or of a wrong type; the message names the first one.
    """
    import pydantic  # not at the top: takes 0.1 s, which `graphsc --help` should not spend

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
            # Strict validation of JSON accepts a list for a tuple, but converts nothing else.
            checked[key] = _adapter(hints.get(key, object)).validate_json(
                json.dumps(plain(value), default=str)
            )
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            problem = first["msg"][:1].lower() + first["msg"][1:]
            raise ConfigError(f"{name}: setting {key!r}: {problem}, not {first['input']!r}") from error
        except ValueError as error:  # JSON cannot represent it, e.g. an integer of 5,000 digits
            raise ConfigError(f"{name}: setting {key!r}: {error}") from error
    return checked


def plain(value: object) -> object:
    """A setting with Python's own numbers and lists in the place of NumPy's."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@cache
def _keywords(target: Callable[..., object]) -> tuple[dict[str, typing.Any], dict[str, inspect.Parameter]]:
    """Type hints and parameters of a constructor or function."""
    function = target.__init__ if inspect.isclass(target) else target
    parameters = {
        parameter.name: parameter
        for parameter in inspect.signature(target).parameters.values()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }
    return typing.get_type_hints(function, include_extras=True), parameters


@cache
def _adapter(hint: typing.Any) -> pydantic.TypeAdapter[object]:
    """The validator of one type; cached because a comparison checks the same few types thousands of times."""
    import pydantic

    config = pydantic.ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    return pydantic.TypeAdapter[object](hint, config=config)


def build(target: Callable[..., T], values: Mapping[str, object], name: str) -> T:
    """Call `target` with user settings after checking them; see `check_arguments`."""
    arguments = check_arguments(target, values, name)
    try:
        return target(**arguments)
    except GraphscError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from error


def dump_yaml(values: Mapping[str, object]) -> str:
    """Settings as YAML that `read_config` reads back, in the same order."""
    text: str = yaml.dump(plain(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text
