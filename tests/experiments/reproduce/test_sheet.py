"""A table as Markdown, LaTeX and CSV says the same three times."""

from graphsc.core.tables import Cell, Table, csv_of

SHEET = Table(
    title="A & B_1",
    heads=("method", "MUTAG", "mean"),
    rows=(
        ("one_way", (Cell("86.19 ± 2.22 *", "89.19 ± 1.83", best=True), Cell("86.19"))),
        ("other", (Cell("", "50.00"), Cell(""))),
    ),
    notes=("In <span>words</span>.",),
    record_heads=("method", "mean"),
    records=(("one_way", 86.19), ("=other", "")),
)


def test_markdown_has_the_best_in_bold_and_the_published_number_under_it():
    lines = SHEET.markdown().splitlines()
    assert lines[2] == "| method | MUTAG | mean |"
    assert lines[4] == (
        r'| one_way | **86.19 ± 2.22 \***<br><span class="published">89.19 ± 1.83</span> | 86.19 |'
    )
    assert lines[5] == '| other | <span class="published">50.00</span> |  |'
    assert lines[-1] == "In <span>words</span>."


def test_latex_is_booktabs_with_everything_escaped():
    text = SHEET.latex()
    assert r"\caption{A \& B\_1.}" in text
    assert r"one\_way & \textbf{86.19 $\pm$ 2.22 $^*$} & 86.19 \\" in text
    assert r"\quad\footnotesize published & \footnotesize 89.19 $\pm$ 1.83 &  \\" in text
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1
    assert "% In words." in text


def test_csv_has_a_record_a_line_and_no_formula():
    assert csv_of([SHEET, SHEET]).splitlines() == [
        "method,mean",
        "one_way,86.19",
        "'=other,",
        "one_way,86.19",
        "'=other,",
    ]
