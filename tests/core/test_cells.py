import numpy as np
import pytest

from graphsc.core.tables import safe_cell


@pytest.mark.parametrize("text", ["=1+1", "+a", "-a", "@x", "\tx", "\rx", '=HYPERLINK("http://x")'])
def test_text_that_a_spreadsheet_would_run_is_quoted(text):
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize(("value", "cell"), [("a=b", "a=b"), (-1.5, "-1.5"), (np.int64(-3), "-3"), ("", "")])
def test_other_cells_stay(value, cell):
    assert safe_cell(value) == cell
