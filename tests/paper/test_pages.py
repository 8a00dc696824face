"""A part of a page is rebuilt between its marks, and the rest is left alone."""

import pytest

from graphsc.core.errors import ConfigError
from graphsc.paper.pages import write_part

PAGE = "before\n<!-- figure1 -->\nold\n<!-- end -->\nbetween\n<!-- figure4 -->\n<!-- end -->\nafter\n"


def test_only_what_is_between_the_marks_of_its_name_changes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    write_part(page, "figure4", "new \\1\n")
    assert page.read_text() == PAGE.replace("<!-- figure4 -->\n", "<!-- figure4 -->\n\nnew \\1\n\n")


def test_a_page_is_rebuilt_only_once(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert write_part(page, "figure1", "new\n")
    assert page.read_text().startswith("before\n<!-- figure1 -->\n\nnew\n\n<!-- end -->\nbetween\n")
    assert not write_part(page, "figure1", "new\n")


def test_a_page_without_marks_is_refused_and_left_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    with pytest.raises(ConfigError, match="no place for figure5"):
        write_part(page, "figure5", "new\n")
    assert page.read_text() == PAGE


def test_a_page_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the page"):
        write_part(tmp_path / "page.md", "figure1", "new\n")
