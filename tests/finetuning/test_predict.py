"""Predictions for a table: every row, in order, with its cells; in bounded pieces; going on after a stop."""

import csv
import signal

import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DataError, NotFoundError
from graphsc.core.files import StoppedError
from graphsc.data.readers import open_collection
from graphsc.finetuning import predict as module
from graphsc.finetuning.finetune import FineTuneSettings, finetune
from graphsc.finetuning.model import load_predictor, predictors_of
from graphsc.finetuning.predict import predict_files, predict_table


@pytest.fixture(scope="module")
def run(molecules, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "run"
    finetune(
        molecules, out=folder, settings=FineTuneSettings(epochs=1, batch_size=32), seeds=[0, 1],
        encoder_settings={"width": 8, "depth": 2}, device="cpu",
    )  # fmt: skip
    return folder


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


LINES = [
    "name,SMILES,note,logp", "a,CCO,=HYPERLINK(1),-1.5", "b,nonsense,x,2", "c,c1ccccc1,@now,", ",,,",
    "e,CCN,\"two, words\",+3", "f,C(C)(C)(C)(C)C,-,0", "g,CC(=O)O,fine,1e-3",
]  # fmt: skip


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in.csv").write_text("\ufeff" + "\n".join(LINES) + "\n", encoding="utf-8")
    return tmp_path / "in.csv"


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_every_row_stays_in_its_place_with_its_cells(run, source, tmp_path, chunk):
    done = predict_table(run, source, tmp_path / "out.csv", chunk=chunk)
    assert (done.rows, done.rejected, done.models) == (7, 3, 2)
    rows = rows_of(tmp_path / "out.csv")
    assert list(rows[0]) == [
        "name", "SMILES", "note", "logp", "nitrogen_probability", "nitrogen_spread", "reason",
    ]  # fmt: skip
    assert [row["name"] for row in rows] == ["a", "b", "c", "", "e", "f", "g"]
    assert [bool(row["reason"]) for row in rows] == [False, True, False, True, False, True, False]
    assert rows[1]["reason"] == "not a SMILES string"
    assert rows[3]["reason"] == "empty"
    assert "valence" in rows[5]["reason"]
    assert rows[1]["nitrogen_probability"] == rows[1]["nitrogen_spread"] == ""
    # What a spreadsheet would run is quoted; numbers stay numbers.
    assert [row["note"] for row in rows][:3] == ["'=HYPERLINK(1)", "x", "'@now"]
    assert rows[4]["note"] == "two, words"
    assert [row["logp"] for row in rows] == ["-1.5", "2", "", "", "+3", "0", "1e-3"]


def test_a_prediction_is_the_mean_over_seeds_and_the_spread_their_deviation(run, source, tmp_path):
    predict_table(run, source, tmp_path / "out.csv")
    models = [load_predictor(path) for path in predictors_of(run)]
    graphs = open_collection(["CCO", "c1ccccc1", "CCN", "CC(=O)O"])
    each = np.stack([model.predict(graphs)[:, 0] for model in models]).astype(float)
    assert ((each > 0) & (each < 1)).all()
    found = [row for row in rows_of(tmp_path / "out.csv") if not row["reason"]]
    np.testing.assert_allclose([float(row["nitrogen_probability"]) for row in found], each.mean(0), rtol=1e-4)
    np.testing.assert_allclose([float(row["nitrogen_spread"]) for row in found], each.std(0), rtol=1e-3)


def test_parquet_says_the_same(run, source, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    predict_table(run, source, tmp_path / "out.csv", chunk=2)
    predict_table(run, source, tmp_path / "out.parquet", chunk=2)
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    texts = rows_of(tmp_path / "out.csv")
    assert [row["name"] for row in rows] == [row["name"] for row in texts]
    assert rows[0]["note"] == "=HYPERLINK(1)"  # no spreadsheet opens it, and nothing is changed
    assert [row["reason"] for row in rows] == [row["reason"] or None for row in texts]
    for row, text in zip(rows, texts, strict=True):
        if text["reason"]:
            assert row["nitrogen_probability"] is None
        else:
            assert row["nitrogen_probability"] == pytest.approx(float(text["nitrogen_probability"]), rel=1e-4)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_prediction_goes_on_without_gaps_or_doubles(run, source, tmp_path, monkeypatch, number):
    predict_table(run, source, tmp_path / "whole.csv", chunk=2)
    asked = []
    work = module.predict_rows

    def counted(rows, *rest):
        asked.append([row.number for row in rows])
        if len(asked) == 2:
            signal.raise_signal(number)
        return work(rows, *rest)

    monkeypatch.setattr(module, "predict_rows", counted)
    with pytest.raises(StoppedError, match="4 of 7 rows") as stop:
        predict_table(run, source, tmp_path / "out.csv", chunk=2)
    assert stop.value.exit_code == 128 + number
    assert not (tmp_path / "out.csv").exists()
    predict_table(run, source, tmp_path / "out.csv", chunk=2)
    assert asked == [[0, 1], [2, 3], [4, 5], [6]]
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_stop_while_the_table_is_written_leaves_none_and_predicts_nothing_again(
    run, source, tmp_path, monkeypatch
):
    predict_table(run, source, tmp_path / "whole.csv", chunk=2)
    write = module.PredictionWriter.write

    def stopped(self, *chunk):
        signal.raise_signal(signal.SIGTERM)
        write(self, *chunk)

    with monkeypatch.context() as patch:
        patch.setattr(module.PredictionWriter, "write", stopped)
        with pytest.raises(StoppedError, match="the file is not written yet") as stop:
            predict_table(run, source, tmp_path / "out.csv", chunk=2)
    assert stop.value.exit_code == 143
    assert not (tmp_path / "out.csv").exists()
    assert not list(tmp_path.glob("*.tmp"))
    monkeypatch.setattr(module, "predict_rows", None)  # all chunks are stored, so it is not called
    predict_table(run, source, tmp_path / "out.csv", chunk=2)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def stopped_halfway(run, source, target, chunk=2):
    """Stop after at least half of the rows; gives the folder of chunks."""

    def progress(done, total):
        if 2 * done >= total:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(StoppedError):
        predict_table(run, source, target, chunk=chunk, progress=progress)
    return target.with_name(f".{target.name}.chunks")


def test_a_damaged_or_foreign_part_is_predicted_again(run, source, tmp_path, monkeypatch):
    predict_table(run, source, tmp_path / "whole.csv", chunk=2)
    folder = stopped_halfway(run, source, tmp_path / "out.csv")
    (folder / "chunk-000000.bin").write_bytes(b"half a file")
    foreign = stopped_halfway(run, source, tmp_path / "other.csv", chunk=1)
    for ending in ("bin", "json"):
        (foreign / f"chunk-000001.{ending}").replace(folder / f"chunk-000001.{ending}")
    asked, work = [], module.predict_rows

    def counted(rows, *rest):
        asked.append([row.number for row in rows])
        return work(rows, *rest)

    monkeypatch.setattr(module, "predict_rows", counted)
    predict_table(run, source, tmp_path / "out.csv", chunk=2)
    assert asked == [[0, 1], [2, 3], [4, 5], [6]]
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_source_that_changed_starts_anew(run, source, tmp_path):
    stopped_halfway(run, source, tmp_path / "out.csv")
    changed = source.read_text(encoding="utf-8").replace("a,CCO", "a,CCCO")
    source.write_text(changed, encoding="utf-8")
    predict_table(run, source, tmp_path / "out.csv", chunk=2)
    predict_table(run, source, tmp_path / "whole.csv", chunk=2)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("lines", [4, 5, 11])
def test_a_source_whose_length_changes_meanwhile_is_refused(run, source, tmp_path, lines):
    def progress(done, total):
        if done == total:
            source.write_text("\n".join((LINES * 2)[:lines]), encoding="utf-8")

    with pytest.raises(DataError, match="the source changed while it was read"):
        predict_table(run, source, tmp_path / "out.csv", chunk=2, progress=progress)
    assert not (tmp_path / "out.csv").exists()


def test_a_column_of_the_same_name_is_not_overwritten(run, tmp_path):
    (tmp_path / "in.csv").write_text("smiles,nitrogen_probability,reason\nCCO,mine,because\n")
    predict_table(run, tmp_path / "in.csv", tmp_path / "out.csv")
    row = rows_of(tmp_path / "out.csv")[0]
    assert (row["nitrogen_probability"], row["reason"]) == ("mine", "because")
    assert 0 < float(row["nitrogen_probability_new"]) < 1
    assert row["reason_new"] == ""


def test_rows_no_parser_likes_stay_with_their_reason(run, tmp_path):
    lines = ["id,smiles", "1,CCO", "2," + "C" * 200_000, "3,C\0C", "4,CC,extra", "5," + "C" * 1500, "6,CCN"]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    predict_table(run, tmp_path / "in.csv", tmp_path / "out.csv", chunk=2)
    rows = rows_of(tmp_path / "out.csv")
    assert [bool(row["nitrogen_probability"]) for row in rows] == [True, False, False, False, False, True]
    assert "longer than 100,000 characters" in rows[1]["reason"]
    assert rows[2]["reason"] == "NUL byte"
    assert rows[3]["reason"] == "3 cells where the header has 2"
    assert "atoms" in rows[4]["reason"]
    (tmp_path / "in.csv").write_text("smiles,smiles\nC,C\n")
    with pytest.raises(DataError, match="appears twice"):
        predict_table(run, tmp_path / "in.csv", tmp_path / "out.csv")


UNEVEN = [["", "smiles", "", "extra_1"], ["0", "CCO", " x", "y"], ["1", "CC", "z"],
          ["2", "C", "a", "b", "c", "d"], ["3", "nonsense", "", "e"], ["4"]]  # fmt: skip


def test_columns_without_a_name_and_cells_of_uneven_rows_stay(run, tmp_path):
    (tmp_path / "in.csv").write_text("".join(",".join(row) + "\n" for row in UNEVEN))
    predict_table(run, tmp_path / "in.csv", tmp_path / "out.csv", chunk=2)
    with open(tmp_path / "out.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header[:6] == ["", "smiles", "", "extra_1", "extra_1_new", "extra_2"]
    assert header[6:] == ["nitrogen_probability", "nitrogen_spread", "reason"]
    for row, cells in zip(rows, UNEVEN[1:], strict=True):
        assert row[:6] == cells + [""] * (6 - len(cells))
    assert [bool(row[6]) for row in rows] == [True, False, False, False, False]
    assert rows[1][8] == "3 cells where the header has 4"
    assert rows[4][8] == "1 cells where the header has 4"


def test_columns_without_a_name_get_one_in_parquet(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "in.csv").write_text("".join(",".join(row) + "\n" for row in UNEVEN))
    predict_table(run, tmp_path / "in.csv", tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names[:6] == ["column_1", "smiles", "column_3", "extra_1", "extra_1_new", "extra_2"]
    assert table["column_3"].to_pylist() == [" x", "z", "a", "", ""]
    assert table["extra_2"].to_pylist() == ["", "", "d", "", ""]


def test_all_of_a_smiles_file_stays(run, tmp_path):
    (tmp_path / "in.smi").write_text("CCO first\tsold\nCCN\nbad third one\n")
    predict_table(run, tmp_path / "in.smi", tmp_path / "out.csv")
    assert [(row["smiles"], row["id"], row["extra_1"]) for row in rows_of(tmp_path / "out.csv")] == [
        ("CCO", "first", "sold"), ("CCN", "", ""), ("bad", "third one", ""),
    ]  # fmt: skip


def test_a_table_without_a_molecule_keeps_its_rows(run, tmp_path):
    (tmp_path / "in.csv").write_text("smiles,name\nbad,a\nworse,b\n")
    done = predict_table(run, tmp_path / "in.csv", tmp_path / "out.csv")
    assert (done.rows, done.rejected) == (2, 2)
    assert [(row["name"], row["reason"]) for row in rows_of(tmp_path / "out.csv")] == [
        ("a", "not a SMILES string"), ("b", "not a SMILES string"),
    ]  # fmt: skip


def test_a_smiles_file_has_its_ids(run, tmp_path):
    (tmp_path / "in.smi").write_text("CCO first\nCCN second\n")
    predict_table(run, tmp_path / "in.smi", tmp_path / "out.csv")
    assert [(row["smiles"], row["id"]) for row in rows_of(tmp_path / "out.csv")] == [
        ("CCO", "first"), ("CCN", "second"),
    ]  # fmt: skip


def test_what_cannot_be_done_is_refused_before_any_work(run, source, tmp_path):
    with pytest.raises(ConfigError, match=r"\.csv or \.parquet"):
        predict_table(run, source, tmp_path / "out.txt")
    with pytest.raises(NotFoundError, match="no fine-tuned model"):
        predict_table(tmp_path, source, tmp_path / "out.csv")
    with pytest.raises(DataError, match=r"no column 'smile'.*columns: name, SMILES, note, logp"):
        predict_table(run, source, tmp_path / "out.csv", smiles_column="smile")
    with pytest.raises(NotFoundError, match="no such table"):
        predict_table(run, tmp_path / "none.csv", tmp_path / "out.csv")


def test_two_processes_write_the_bytes_of_one(run, source, tmp_path):
    for jobs in (1, 2):
        predict_table(run, source, tmp_path / f"{jobs}.csv", chunk=2, jobs=jobs)
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


@pytest.mark.parametrize("when", [0, 2, 6, 7])
@pytest.mark.parametrize(
    ("old", "new"), [("a,CCO", "a,CCC"), ("g,CC(=O)O", "g,CC(=O)N"), (",fine,", ",good,")]
)
def test_a_source_of_the_same_length_that_is_replaced_meanwhile_is_refused(
    run, source, tmp_path, when, old, new
):
    """A molecule is found by the hash of its chunk, any other cell before the file appears."""

    def progress(done, total):
        if done == when:
            text = source.read_text(encoding="utf-8")
            source.write_text(text.replace(old, new), encoding="utf-8")

    with pytest.raises(DataError, match="the source changed while it was read"):
        predict_table(run, source, tmp_path / "out.csv", chunk=2, progress=progress)
    assert not (tmp_path / "out.csv").exists()


def test_parquet_is_read_like_csv(run, source, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = rows_of(source)
    names = [name.lstrip("\ufeff") for name in rows[0]]
    columns = {name: [list(row.values())[place] or None for row in rows] for place, name in enumerate(names)}
    parquet.write_table(arrow.table(columns), tmp_path / "in.parquet")
    predict_table(run, source, tmp_path / "csv.csv", chunk=3)
    predict_table(run, tmp_path / "in.parquet", tmp_path / "parquet.csv", chunk=3)
    assert (tmp_path / "parquet.csv").read_bytes() == (tmp_path / "csv.csv").read_bytes()


@pytest.mark.parametrize("jobs", [1, 2])
def test_many_tables_are_predicted_each_into_its_own(run, source, tmp_path, jobs):
    parts = tmp_path / "parts"
    parts.mkdir()
    source.rename(parts / "a.csv")
    (parts / "b.smi").write_text("CCO one\nCCN two\n")
    (parts / "bad.csv").write_text("name,formula\nx,H2O\n")
    said = []
    done = predict_files(run, parts, tmp_path / "out", jobs=jobs, chunk=2, log=said.append)
    assert [(part.target.name, part.error is None) for part in done] == [
        ("a.csv", True), ("b.csv", True), ("bad.csv", False),
    ]  # fmt: skip
    assert [part.summary for part in done[:2]] == [{"rows": 7, "rejected": 3}, {"rows": 2, "rejected": 0}]
    assert len(said) == 1
    assert "which column holds the smiles" in said[0]
    predict_table(run, parts / "a.csv", tmp_path / "a.csv", chunk=2)
    assert (tmp_path / "out" / "a.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    assert [row["id"] for row in rows_of(tmp_path / "out" / "b.csv")] == ["one", "two"]
    (parts / "b.smi").write_text("CCO one\nCCS two\n")
    again = predict_files(run, parts, tmp_path / "out", jobs=jobs, chunk=2)
    assert [part.computed for part in again[:2]] == [False, True]


def test_other_models_predict_many_tables_again(run, source, tmp_path):
    for model, expected in ((run, True), (run, False), (run / "seed-0", True)):
        (part,) = predict_files(model, f"{tmp_path}/in*.csv", tmp_path / "out", format="parquet")
        assert part.computed is expected
        assert part.target == tmp_path / "out" / "in.parquet"
