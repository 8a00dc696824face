"""Where models are, and what their folders say about tables."""

import pytest

from graphsc.core.run_folder import RunFolder
from graphsc.training.model_files import is_vectors, trained_column


@pytest.fixture
def run(tmp_path):
    """A folder of a fine-tuning run, as far as its configuration."""
    folder = tmp_path / "run"
    folder.mkdir()
    source = {"data": "old.csv", "smiles_column": "drug", "id_column": "batch no", "separator": ";"}
    RunFolder(folder).save_config({"source": source})
    return folder


@pytest.mark.parametrize(
    ("header", "smiles", "ids"),
    [
        ("drug,batch no", "drug", "batch no"),
        ("batch no;smiles", None, "batch no"),
        ("smiles,id", None, None),
        ("", None, None),
    ],
)
def test_columns_of_the_training_table_are_found_again(run, tmp_path, header, smiles, ids):
    table = tmp_path / "new.csv"
    table.write_text(f"{header}\n")
    assert trained_column(run, table, "smiles_column") == smiles
    assert trained_column(run, table, "id_column") == ids


def test_no_run_and_no_table_have_no_column(run, tmp_path):
    (tmp_path / "new.csv").write_text("drug\nCC\n")
    assert trained_column(tmp_path, tmp_path / "new.csv", "smiles_column") is None
    assert trained_column(run, tmp_path / "missing.csv", "smiles_column") is None
    assert trained_column(run, tmp_path, "smiles_column") is None


def test_a_run_of_several_label_fractions_has_the_columns_of_its_largest(run, tmp_path):
    (tmp_path / "all").mkdir()
    run.rename(tmp_path / "all" / "labels-0.5")
    (tmp_path / "new.csv").write_text("drug\nCC\n")
    assert trained_column(tmp_path / "all", tmp_path / "new.csv", "smiles_column") == "drug"


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("v.csv", "id,v0,v1\na,1,2\n", True), ("m.csv", "id,smiles\na,CC\n", False),
    ("v.txt", "id,v0\na,1\n", False),
])  # fmt: skip
def test_vectors_are_known_by_their_columns(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    assert is_vectors(tmp_path / name) is expected
