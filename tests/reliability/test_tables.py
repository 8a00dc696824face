"""Rows 13, 21 and 28 as a person meets them: tables and archives that are not what they seem."""

import csv
import zipfile

import pytest
from hurt import error_of

from graphsc.core.chunks import MemoryChunks

pytest.importorskip("rdkit")

ROWS = [f"{'C' * (1 + k % 4)}{'N' if k % 2 else 'O'},{k % 2}" for k in range(24)]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "m.csv"
    path.write_text("\n".join(["smiles,y", *ROWS]) + "\n")
    return path


@pytest.fixture(scope="module")
def models(labelled):
    """By verb, the run that it takes."""
    from graphsc.cli import main

    folder = labelled.parent
    small = ("--set", "encoder.width=4", "--set", "encoder.depth=1", "--epochs", "1")
    predictor, encoder = str(folder / "predictor"), str(folder / "encoder")
    arguments = [
        "finetune",
        "none",
        str(labelled),
        "--labels",
        "y",
        "--split",
        "random",
        "--seeds",
        "1",
        *small,
    ]
    assert main.run([*arguments, "--out", predictor]) == 0
    assert main.run(["train", str(labelled), *small, "--out", encoder]) == 0
    return {"predict": predictor, "embed": encoder}


@pytest.mark.parametrize("verb", ["predict", "embed"])
def test_a_source_that_is_replaced_while_it_is_read(run, models, tmp_path, monkeypatch, verb):
    source = tmp_path / "m.csv"
    source.write_text("smiles,name\nCCO,a\nCCN,b\n")
    write = MemoryChunks.write

    def replace(*arguments):
        write(*arguments)
        source.write_text("smiles,name\nCCO,a\nCCN,c\n")

    monkeypatch.setattr(MemoryChunks, "write", replace)
    outcome = run(verb, models[verb], source, "--out", tmp_path / "out.csv")
    assert "the source changed while it was read" in error_of(outcome)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("verb", ["predict", "embed"])
def test_a_table_of_bad_rows_only(run, models, tmp_path, verb):
    (tmp_path / "m.csv").write_text("smiles,name\nbad,a\n,b\n")
    code, out, err = run(verb, models[verb], tmp_path / "m.csv", "--out", tmp_path / "out.csv")
    assert code == 0, err
    assert "rejected\t2" in out
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["reason"] for row in rows] == ["not a SMILES string", "empty"]


def test_an_archive_of_few_megabytes_with_gigabytes_of_edges(run, tmp_path):
    """Only its declared size is large, which is all that is looked at."""
    with zipfile.ZipFile(tmp_path / "T.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("T_graph_indicator.txt", "1\n1\n")
        archive.writestr("T_A.txt", "1, 2\n2, 1\n" * 100_000)
        archive.infolist()[1].file_size = 1_500_000_000
    assert "takes the unpacked size beyond" in error_of(run("data", "check", tmp_path / "T.zip"))
