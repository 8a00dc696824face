"""Small changes to real files: gentle ones that a reader should survive, and harsh ones it should refuse."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

Change = Callable[[bytes, random.Random], bytes]

NUMBERS = ("0", "-1", "1e308", "nan", "inf", "9" * 30, "2147483648", "0x10", "1.5", "", " ", "\uff13", "1_0")
TEXTS = (
    "",
    "=1+1",
    "<script>",
    "\x00",
    "é",
    "日本",
    "'",
    '"',
    '""',
    "a" * 5000,
    "../../x",
    "\ufeff",
    "\t",
    "null",
)
PIECES = (
    b"\x00",
    b"\xff\xfe",
    b"\r",
    b"\n",
    b"\r\n",
    b",",
    b'"',
    b"\xef\xbb\xbf",
    b"-",
    b"1e999",
    b"\x80\x04",
)


def flip(data: bytes, draw: random.Random) -> bytes:
    """One bit of one byte."""
    if not data:
        return data
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def cut(data: bytes, draw: random.Random) -> bytes:
    """Everything behind some place is gone."""
    return data[: draw.randrange(len(data) + 1)]


def lose(data: bytes, draw: random.Random) -> bytes:
    """A stretch from the middle is gone."""
    start = draw.randrange(len(data) + 1)
    return data[:start] + data[start + draw.randrange(1, 40) :]


def insert(data: bytes, draw: random.Random) -> bytes:
    """Bytes that readers trip over, somewhere."""
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(PIECES) * draw.choice((1, 1, 1, 50)) + data[at:]


def line_ends(data: bytes, _: random.Random) -> bytes:
    """As another system writes them."""
    return data.replace(b"\n", b"\r\n")


def blank_lines(data: bytes, draw: random.Random) -> bytes:
    """Lines without anything, at the end."""
    return data + b"\n" * draw.randrange(1, 5)


def swap_lines(data: bytes, draw: random.Random) -> bytes:
    """Two lines, not the first, change places."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 3:
        return data
    one, two = draw.randrange(1, len(lines)), draw.randrange(1, len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return b"".join(lines)


def repeat_line(data: bytes, draw: random.Random) -> bytes:
    """A line, not the first, stands there twice."""
    lines = data.splitlines(keepends=True)
    at = draw.randrange(min(1, len(lines) - 1), len(lines)) if lines else 0
    return b"".join([*lines[: at + 1], *lines[at : at + 1], *lines[at + 1 :]])


def drop_line(data: bytes, draw: random.Random) -> bytes:
    """A line, not the first, is gone."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    del lines[draw.randrange(1, len(lines))]
    return b"".join(lines)


def cell(values: tuple[str, ...]) -> Change:
    """One cell of one line becomes one of `values`."""

    def change(data: bytes, draw: random.Random) -> bytes:
        lines = data.split(b"\n")
        at = draw.randrange(len(lines))
        cells = lines[at].split(b",")
        cells[draw.randrange(len(cells))] = draw.choice(values).encode()
        lines[at] = b",".join(cells)
        return b"\n".join(lines)

    return change


def swap_cells(data: bytes, draw: random.Random) -> bytes:
    """The last cells of two lines, not of the first, change places."""
    lines = data.split(b"\n")
    if len(lines) < 4:
        return data
    one, two = draw.randrange(1, len(lines) - 1), draw.randrange(1, len(lines) - 1)
    heads, tails = zip(*(lines[at].rpartition(b",")[::2] for at in (one, two)), strict=True)
    for at, head, tail in zip((one, two), heads, reversed(tails), strict=True):
        lines[at] = head + b"," + tail if b"," in lines[at] else tail
    return b"\n".join(lines)


HARSH: tuple[Change, ...] = (flip, cut, lose, insert, drop_line, cell(NUMBERS), cell(TEXTS))
GENTLE: tuple[Change, ...] = (line_ends, blank_lines, swap_lines, repeat_line, swap_cells)

VALUES: tuple[object, ...] = (
    None, True, -1, 0, 1, 2**70, 1.5, -0.0, 1e308, "", "x", "../x", "é", "a" * 3000, [], {}, [[]], [1, 2],
    {"a": 1},
)  # fmt: skip


def places(tree: object) -> list[tuple[object, object]]:
    """Every (container, key) of nested dicts and lists."""
    found: list[tuple[object, object]] = []
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            found.append((one, key))
            waiting.append(one[key])  # type: ignore[index]
    return found


def change_tree(tree: object, draw: random.Random) -> object:
    """A copy in which one value is another, gone, doubled, or under another name."""
    tree = copy.deepcopy(tree)
    found = places(tree)
    if not found:
        return draw.choice(VALUES)
    owner, key = draw.choice(found)
    kind = draw.randrange(5)
    if kind == 0:
        del owner[key]  # type: ignore[attr-defined]
    elif kind == 1 and isinstance(owner, dict):
        owner[str(key) + draw.choice(("", "x", " ", "é"))] = owner.pop(key)
    elif kind == 2 and isinstance(owner, list):
        owner.insert(draw.randrange(len(owner) + 1), copy.deepcopy(owner[key]))  # type: ignore[index]
    else:
        value = owner[key]  # type: ignore[index]
        near: tuple[object, ...] = ()
        if isinstance(value, bool):
            near = (not value,)
        elif isinstance(value, (int, float)):
            near = (value + 1, value - 1, -value, value * 2, float(value))
        elif isinstance(value, str):
            near = (value + "x", value[1:], value.upper(), value * 2)
        owner[key] = draw.choice(near + (VALUES if draw.random() < 0.5 or not near else ()))  # type: ignore[index]
    return tree
