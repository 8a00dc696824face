"""One table as Markdown, LaTeX, CSV and terminal text."""

import numpy as np
import pytest

from graphsc.core.tables import Cell, Table, csv_text, plain_text, safe_cell

TABLE = Table(
    title="A & B_1",
    columns=("method", "MUTAG", "mean"),
    rows=(
        ("one_way", Cell("86.19 ± 2.22 *", "89.19 ± 1.83", best=True), Cell("86.19")),
        ("other", Cell("", "50.00"), Cell("")),
    ),
    notes=("In <span>words</span>.",),
)


def test_markdown_has_the_best_in_bold_and_the_published_number_under_it():
    lines = TABLE.markdown().splitlines()
    assert lines[2] == "| method | MUTAG | mean |"
    assert lines[4] == (
        r'| one_way | **86.19 ± 2.22 \***<br><span class="published">89.19 ± 1.83</span> | 86.19 |'
    )
    assert lines[5] == '| other | <span class="published">50.00</span> |  |'
    assert lines[-1] == "In <span>words</span>."


def test_latex_is_booktabs_with_everything_escaped():
    text = TABLE.latex()
    assert r"\caption{A \& B\_1.}" in text
    assert r"one\_way & \textbf{86.19 $\pm$ 2.22 $^*$} & 86.19 \\" in text
    assert r"\quad\footnotesize published & \footnotesize 89.19 $\pm$ 1.83 &  \\" in text
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1
    assert "% In words." in text


def test_csv_has_the_first_line_of_each_cell():
    assert TABLE.csv().splitlines() == ["method,MUTAG,mean", "one_way,86.19 ± 2.22 *,86.19", "other,,"]


def test_csv_has_no_formulas_and_signs_of_numbers_stay():
    assert csv_text(["method", "mean"], [["=other", -1.5], ["@x", ""]]).splitlines() == [
        "method,mean",
        "'=other,-1.5",
        "'@x,",
    ]


def test_missing_values_are_empty_cells():
    table = Table(("a", "b", "c"), ((None, float("nan"), 0),))
    assert table.markdown().splitlines()[-1] == "|  |  | 0 |"
    assert table.csv().splitlines()[-1] == ",,0"


def test_a_bar_in_a_name_does_not_end_its_cell():
    assert Table(("a", "b"), (("x|y", Cell("1|2")),)).markdown().splitlines()[-1] == r"| x\|y | 1\|2 |"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="one value per column"):
        Table(("a", "b"), ((1,),))


def test_a_pipe_gets_tab_separated_lines(capsys):
    Table(("a", "b"), ((Cell("x", "y"), 2),)).show()
    assert capsys.readouterr().out == "a\tb\nx\t2\n"


def test_alignment_is_left_for_names_and_right_for_numbers_unless_said():
    assert Table(("a", "b"), ()).markdown().splitlines()[1] == "| --- | ---: |"
    assert Table(("a", "b"), (), align="ll").markdown().splitlines()[1] == "| --- | --- |"


def test_a_note_without_markup():
    assert plain_text("\\* above *untrained*, **not** <span>x</span>.") == "* above untrained, not x."


@pytest.mark.parametrize("text", ["=1+1", "+a", "-a", "@x", "\tx", "\rx", '=HYPERLINK("http://x")'])
def test_text_that_a_spreadsheet_would_run_is_quoted(text):
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize(("value", "cell"), [("a=b", "a=b"), (-1.5, "-1.5"), (np.int64(-3), "-3"), ("", "")])
def test_other_cells_stay(value, cell):
    assert safe_cell(value) == cell


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("<img src=x onerror=y>", "&lt;img src=x onerror=y>"),
        ("<!-- end -->", "&lt;!-- end -->"),
        ('<span onclick="x">', '&lt;span onclick="x">'),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
        ("[a](javascript:x)", r"[a]\(javascript:x)"),
        ("a\n# b", "a # b"),
        ("p < 0.05 & q > 1", "p < 0.05 & q > 1"),
    ],
)
def test_markdown_has_no_html_or_links_of_a_name(name, written):
    text = Table((name, "b"), ((name, Cell(name, name)),), name, (name,)).markdown()
    assert name == written or name not in text
    assert text.count(written) == 6  # title, column, row, two lines of a cell, note
