"""Figures as files, and the styles of groups."""

import pytest

from graphsc.core.errors import ConfigError
from graphsc.report.figure import (
    COLOURS,
    DASHES,
    MARKERS,
    colour,
    dashes,
    marker,
    new_figure,
    save_figure,
    svg_of,
    text_width,
)


def small():
    figure = new_figure(1.0)
    figure.subplots().plot([0, 1], [1, 0], label="a")
    return figure


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("b.svg", b"<?xml"), ("C.PNG", b"\x89PNG")]
)
def test_the_suffix_chooses_the_format(tmp_path, name, start):
    save_figure(small(), tmp_path / "folder" / name)
    assert (tmp_path / "folder" / name).read_bytes().startswith(start)


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"a\.pdf"):
        save_figure(small(), tmp_path / "a.pdf")


def test_equal_figures_give_equal_svg():
    assert svg_of(small()) == svg_of(small())


def test_text_width_grows_with_letters_and_size():
    assert text_width("", 10) == 0.0
    assert text_width("iii", 10) < text_width("www", 10) < text_width("www", 12)


def test_forty_nine_groups_have_distinct_styles():
    assert len(COLOURS) == len(MARKERS) == len(DASHES)
    assert len({(colour(n), marker(n)) for n in range(49)}) == 49
    assert len({(colour(n), dashes(n)) for n in range(49)}) == 49
