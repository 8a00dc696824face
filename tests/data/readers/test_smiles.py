"""The SMILES reader: lists, .smi files and tables, and every way in which a row can be wrong."""

import csv
import gzip
import lzma
import subprocess
import sys

import numpy as np
import pytest

from graphsc import GraphBatch, GraphCollection, open_collection
from graphsc.core.errors import ConfigError, DataError, MissingExtraError, NotFoundError
from graphsc.data.molecules.conversion import read_molecules
from graphsc.data.readers.smiles import accepts_smiles

pytest.importorskip("rdkit")

NAN = np.nan


@pytest.fixture
def write(tmp_path):
    """`write("m.csv", text)`: a file, packed as its ending says."""

    def write(name, content):
        data = content.encode() if isinstance(content, str) else content
        pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(f".{name.rpartition('.')[2]}", bytes)
        (tmp_path / name).write_bytes(pack(data))
        return tmp_path / name

    return write


TABLE = "name,smiles,active,logp\nethanol,CCO,1,-0.31\nbenzene,c1ccccc1,,2.13\nwater,O,0,\n"


class TestSources:
    def test_list_of_strings(self):
        graphs = open_collection(["CCO", "c1ccccc1"])
        assert np.diff(graphs.node_ptr).tolist() == [3, 6]
        assert graphs.ids.tolist() == [0, 1]
        assert graphs.undirected
        assert graphs.labels is None
        graphs.check()

    @pytest.mark.parametrize("make", [tuple, np.array, lambda s: np.array(s, dtype=object)])
    def test_other_kinds_of_lists(self, make):
        assert open_collection(make(["CCO", "O"])) == open_collection(["CCO", "O"])

    def test_none_and_nan_and_numbers_in_a_list_are_rows_without_a_molecule(self):
        graphs = open_collection(["C", None, float("nan"), 7])
        assert graphs.ids.tolist() == [0]
        assert [(row.row, row.reason) for row in graphs.rejected] == [
            (1, "empty"), (2, "empty"), (3, "not text but int"),
        ]  # fmt: skip

    def test_list_that_begins_with_a_gap(self):
        assert open_collection([None, float("nan"), "CCO"]).ids.tolist() == [2]

    def test_list_of_paths_is_not_taken_for_files(self, write, monkeypatch):
        monkeypatch.chdir(write("m.csv", TABLE).parent)
        with pytest.raises(DataError, match=r"none of 1 rows holds a molecule.*m\.csv.*one by one"):
            open_collection(["m.csv"])

    @pytest.mark.parametrize("name", ["m.smi", "m.smiles", "m.SMI.gz", "m.smi.xz"])
    def test_smi_file_without_ids(self, write, name):
        graphs = open_collection(write(name, "CCO\n\nc1ccccc1\r\nO"))
        assert graphs.ids.tolist() == [0, 1, 2]
        assert graphs.name == "m"

    def test_smi_file_with_ids_and_header(self, write):
        graphs = open_collection(write("m.smi", "SMILES name\nCCO\tethanol\nO   water of life\nC\n"))
        assert list(graphs.ids) == ["ethanol", "water of life", "2"]

    @pytest.mark.parametrize("name", ["m.csv", "m.csv.gz", "m.csv.xz", "m.tsv"])
    def test_table(self, write, name):
        text = TABLE.replace(",", "\t") if name.endswith("tsv") else TABLE
        graphs = open_collection(write(name, text), label_columns=["active", "logp"])
        assert graphs.tasks == ("active", "logp")
        np.testing.assert_array_equal(graphs.labels, [[1, -0.31], [np.nan, 2.13], [0, np.nan]])
        assert graphs.ids.tolist() == [0, 1, 2]

    def test_no_labels_are_read_by_default(self, write):
        assert open_collection(write("m.csv", TABLE)).labels is None

    def test_star_is_every_other_column(self, write):
        graphs = open_collection(write("m.csv", TABLE), id_column="name", label_columns="*")
        assert graphs.tasks == ("active", "logp")
        assert list(graphs.ids) == ["ethanol", "benzene", "water"]

    def test_words_are_classes_in_sorted_order(self, write):
        graphs = open_collection(write("m.csv", "smiles,y\nC,toxic\nO,safe\nN,\n"), label_columns="y")
        assert graphs.classes == {"y": ("safe", "toxic")}
        np.testing.assert_array_equal(graphs.labels[:, 0], [1, 0, np.nan])

    def test_large_whole_numbers_stay_two_classes(self, write):
        """As floats, 2^53 and 2^53 + 1 are one number."""
        text = f"smiles,y,z\nC,{2**53 + 1},{2**53 + 1}\nO,{2**53},0.5\nN,,2\n"
        graphs = open_collection(write("m.csv", text), label_columns=["y", "z"])
        assert graphs.classes == {"y": ("9007199254740992", "9007199254740993")}
        np.testing.assert_array_equal(graphs.labels[:, 0], [1, 0, np.nan])
        np.testing.assert_array_equal(graphs.labels[:, 1], [2.0**53, 0.5, 2])  # a measurement is rounded

    def test_large_numbers_that_floats_hold_stay_numbers(self, write):
        graphs = open_collection(write("m.csv", f"smiles,y\nC,{10**20}\nO,{2**60}\n"), label_columns="y")
        assert graphs.classes == {}
        np.testing.assert_array_equal(graphs.labels[:, 0], [1e20, 2.0**60])

    @pytest.mark.parametrize("missing", ["nan", "NaN", "NAN", "-nan", "NA", "N/A", "<NA>", "null", "None"])
    def test_words_for_a_missing_label_are_no_classes(self, write, missing):
        text = f"smiles,word,number\nC,toxic,1\nO,{missing},{missing}\nN,safe,0\n"
        graphs = open_collection(write("m.csv", text), label_columns=["word", "number"])
        assert graphs.classes == {"word": ("safe", "toxic")}
        np.testing.assert_array_equal(graphs.labels, [[1, 1], [np.nan, np.nan], [0, 0]])

    @pytest.mark.parametrize(
        ("infinite", "others"),
        [
            *((text, others) for text in ("inf", "-inf", "Infinity") for others in (("toxic", "safe"), "10")),
            ("1e999", "10"),
        ],
    )
    def test_an_infinite_label_is_no_class(self, write, infinite, others):
        text = f"smiles,y\nC,{others[0]}\nO,{infinite}\nN,{others[1]}\n"
        graphs = open_collection(write("m.csv", text), label_columns="y")
        assert graphs.classes == ({"y": ("safe", "toxic")} if others[0] == "toxic" else {})
        assert [row.reason for row in graphs.rejected] == [f"label {infinite!r} of 'y' is infinite"]
        np.testing.assert_array_equal(graphs.labels[:, 0], [1, 0])

    @pytest.mark.parametrize("column", ["SMILES", "mol", "canonical_smiles", " Smiles "])
    def test_usual_names_of_the_column(self, write, column):
        assert len(open_collection(write("m.csv", f"id,{column}\n1,CCO\n"))) == 1

    def test_any_name_when_it_is_given(self, write):
        path = write("m.csv", "what,drawn\nx,CCO\n")
        assert len(open_collection(path, smiles_column="drawn")) == 1

    def test_byte_order_mark(self, write):
        assert len(open_collection(write("m.csv", "\ufeffsmiles\nCCO\n".encode()))) == 1

    def test_unnamed_index_column_of_pandas(self, write):
        assert len(open_collection(write("m.csv", ",smiles\n0,CCO\n1,O\n"))) == 2

    def test_scheme_is_the_same_for_all_molecules(self):
        one, other = open_collection(["C"]), open_collection(["N#[Au]", "*C", "F/C=C/F"])
        assert one.features == other.features
        assert one.edges.columns == other.edges.columns
        GraphCollection.concatenate([one, other]).check()

    def test_batch_of_molecules(self):
        batch = GraphBatch.gather(open_collection(["CCO", "O"]), np.array([1, 0]))
        assert batch.codes[:, 0].tolist() == [7, 5, 5, 7]
        assert batch.edge_codes.shape == (4, 2)


class TestWrongTables:
    @pytest.mark.parametrize(
        ("text", "options", "message"),
        [
            (TABLE, {"smiles_column": "smile"}, "no column 'smile'.*columns: name, smiles, active, logp"),
            (TABLE, {"label_columns": "activ"}, "no column 'activ'.*columns: name, smiles"),
            (TABLE, {"id_column": "id"}, "no column 'id'.*columns: name"),
            (TABLE, {"label_columns": "smiles"}, "cannot be a label"),
            ("smiles,mol\nC,C\n", {}, "smiles and mol match.*columns: smiles, mol"),
            ("a,b\nC,C\n", {"reader": "smiles"}, "none has a usual name.*columns: a, b"),
            ("smiles,y,y\nC,1,2\n", {}, "column 'y' appears twice"),
            ("smiles,y\n", {}, "no molecule in this source"),
            ("", {"reader": "smiles"}, "no header"),
            ("smiles,y\n\"C,1\n", {}, "not a table"),
            ("smiles\nxx\nyy\n", {}, "none of 2 rows holds a molecule"),
            (TABLE, {"strict": 1}, "strict"),
            (TABLE, {"max_atoms": 0}, "at least 1"),
        ],
        ids=["smiles", "label", "id", "both", "several", "none", "twice", "rows", "nothing", "quote", "all",
             "type", "cap"],
    )  # fmt: skip
    def test_is_one_sentence(self, write, text, options, message):
        with pytest.raises((DataError, ConfigError), match=message):
            open_collection(write("m.csv", text), **options)

    def test_missing_file(self, tmp_path):
        with pytest.raises(DataError, match="cannot read: No such file"):
            open_collection(tmp_path / "m.smi")

    @pytest.mark.parametrize("name", ["m.csv.gz", "m.smi.xz"])
    def test_damaged_compression(self, write, name):
        path = write(name, TABLE * 50)
        path.write_bytes(path.read_bytes()[:60])
        with pytest.raises((DataError, NotFoundError)):
            open_collection(path, reader="smiles")

    def test_column_options_without_columns(self, write):
        with pytest.raises(DataError, match="no named columns"):
            open_collection(["C"], reader="smiles", smiles_column="x")
        with pytest.raises(DataError, match="no named columns"):
            open_collection(write("m.smi", "C\n"), label_columns="x")

    def test_table_without_smiles_finds_no_reader_and_says_what_is_needed(self, write):
        with pytest.raises(NotFoundError, match=r"--smiles-column; .* columns: a, b"):
            open_collection(write("m.csv", "a,b\n1,2\n"))

    @pytest.mark.parametrize("name", ["Structure (SMILES)", "compound_smiles", "SMILES-parent"])
    def test_a_column_is_found_by_the_word_in_its_name(self, write, name):
        assert len(open_collection(write("m.csv", f"name,{name}\na,CCO\nb,CC\n"))) == 2

    def test_of_two_such_columns_neither_is_taken(self, write):
        path = write("m.csv", "raw_smiles,clean_smiles\nCCO,CC\n")
        with pytest.raises(DataError, match="raw_smiles and clean_smiles match"):
            open_collection(path)
        assert open_collection(path, smiles_column="clean_smiles").num_nodes == 2

    def test_a_usual_name_is_preferred_to_one_with_the_word(self, write):
        graphs = open_collection(write("m.csv", "raw_smiles,smiles\nCCO,CC\n"))
        assert graphs.num_nodes == 2


BAD = (
    "id,smiles,y\n"
    "a,CCO,1\n"
    "b,notamolecule,1\n"
    "c,,0\n"
    'd,"=HYPERLINK(""http://x"")",1\n'
    f"e,{'C' * 1_000_000},0\n"
    f"f,{'C' * 5_000},0\n"
    "g,C\0C,0\n"
    "h,CC,high\n"
    "i,CC\n"
    "j,O,0\n"
)


class TestBadRows:
    def test_are_left_out_and_listed(self, write, tmp_path):
        graphs = open_collection(
            write("m.csv", BAD), label_columns="y", rejected=str(tmp_path / "rejected.csv")
        )
        assert list(graphs.ids) == ["a", "j"]  # a column called id
        assert graphs.labels[:, 0].tolist() == [1, 0]
        assert graphs.notes[0].startswith("8 of 10 rows were left out, the first being row 1: not a SMILES")
        with open(tmp_path / "rejected.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(row["row"], row["line"], row["reason"]) for row in rows] == [
            ("1", "3", "not a SMILES string"),
            ("2", "4", "empty"),
            ("3", "5", "not a SMILES string"),
            ("4", "6", "line is longer than 100,000 characters"),
            ("5", "7", "5,000 atoms, at most 1,000 are taken"),
            ("6", "8", "NUL byte"),
            ("7", "9", "label 'high' of 'y' is not a number"),
            ("8", "10", "2 cells where the header has 3"),
        ]
        assert rows[2]["smiles"].startswith("'=HYPERLINK")
        assert all(len(row["smiles"]) <= 201 for row in rows)

    def test_long_line_of_a_single_column(self, write):
        graphs = open_collection(write("m.csv", f"smiles\n{'C' * 200_000}\nO\n"))
        assert [row.reason for row in graphs.rejected] == ["line is longer than 100,000 characters"]

    def test_strict_is_an_error_that_names_the_first(self, write):
        with pytest.raises(DataError, match=r"row 1 holds no molecule.*line 3") as error:
            open_collection(write("m.csv", BAD), label_columns="y", strict=True)
        assert error.value.exit_code == 2

    def test_latin_1_in_a_column_that_is_not_used(self, write):
        assert len(open_collection(write("m.csv", b"name,smiles\ncaf\xe9,CCO\n"))) == 1

    def test_infinite_label_is_listed(self, write):
        graphs = open_collection(write("m.csv", "smiles,y\nC,1e999\nO,1\n"), label_columns="y")
        assert [row.reason for row in graphs.rejected] == ["label '1e999' of 'y' is infinite"]


@pytest.mark.parametrize(
    ("header", "labels", "ids"),
    [
        ("ID,smiles,y", "y", ["7", "8"]),
        ("ID,smiles,y", "*", ["7", "8"]),
        ("ID,smiles,y", ("ID", "y"), [0, 1]),  # a label is no id
        ("id,smiles,Id", "Id", ["7", "8"]),
        ("key,smiles,y", "y", [0, 1]),
    ],
)
def test_a_column_called_id_holds_the_ids(write, header, labels, ids):
    graphs = open_collection(write("m.csv", f"{header}\n7,CCO,1\n8,CC,0\n"), label_columns=labels)
    assert list(graphs.ids) == ids
    assert "ID" not in graphs.tasks or labels == ("ID", "y")


class TestSeparators:
    PLAIN = "smiles,y,name\nCCO,1.5,a\nCC,2,b\nC,-0.25,c\n"

    @pytest.mark.parametrize("separator", [";", "\t", "|"])
    def test_are_detected_with_decimal_commas(self, write, separator):
        text = self.PLAIN.replace(",", separator).replace(".", ",")
        graphs = open_collection(write("other.csv", text), label_columns="y")
        assert graphs == open_collection(write("m.csv", self.PLAIN), label_columns="y")

    def test_of_a_header_with_commas_in_its_names(self, write):
        path = write("m.csv", "smiles;IC50, nM;y\nCCO;1,5;0\nCC;2,5;1\n")
        graphs = open_collection(path, label_columns="IC50, nM")
        assert graphs.labels[:, 0].tolist() == [1.5, 2.5]

    def test_decimal_commas_are_found_among_limits_and_words(self, write):
        path = write("m.csv", "smiles;y\nCCO;1,5\nCC;>8,4\nC;n.d.\nCCC;2,25\nCCCC;3\n")
        graphs = open_collection(path, label_columns="y", censored="keep")
        assert graphs.labels[:, 0].tolist() == [1.5, 8.4, 2.25, 3]

    def test_of_points_and_commas_the_points_are_decimal(self, write):
        path = write("m.csv", "smiles;y\nCCO;1,5\nCC;2,5\nCCC;3,5\nC;4.5\n")
        graphs = open_collection(path, label_columns="y")
        assert graphs.labels[:, 0].tolist() == [4.5]

    def test_can_be_set(self, write):
        path = write("m.csv", "smiles:y\nCCO:1\n")
        with pytest.raises(DataError, match="columns: smiles:y; if this is several, set separator"):
            open_collection(path, reader="smiles")
        assert len(open_collection(path, reader="smiles", separator=":")) == 1

    @pytest.mark.parametrize(
        ("decimal", "label", "said"),
        [
            (".", "-0,31", "'-0,31' in 'y' has a ',', but decimal is '.'.*set decimal to ','"),
            (",", "1.250", "'1.250' in 'y' has a '.', but decimal is ','.*set decimal to '.'"),
        ],
    )
    def test_the_other_decimal_point_than_the_one_given_is_refused(self, write, decimal, label, said):
        """Numbers with commas became classes; thousands with points became decimals."""
        path = write("m.csv", f"smiles;y\nCCO;{label}\nCC;{label}\nCCC;3\nC;n.d.\n")
        with pytest.raises(DataError, match=said):
            open_collection(path, label_columns="y", decimal=decimal)

    def test_a_quoted_decimal_comma_in_a_usual_table(self, write):
        graphs = open_collection(write("m.csv", 'smiles,y\nCCO,"3,14"\nCC,"2,5"\n'), label_columns="y")
        assert graphs.labels[:, 0].tolist() == [3.14, 2.5]

    def test_thousands_are_asked_about(self, write):
        path = write("m.csv", "smiles;y\nCCO;1,250\nCC;2,500\n")
        with pytest.raises(DataError, match="'1,250' in 'y' may be a decimal number or thousands"):
            open_collection(path, label_columns="y")
        graphs = open_collection(path, label_columns="y", decimal=",")
        assert graphs.labels[:, 0].tolist() == [1.25, 2.5]


def sdf(*records):
    """An SDF file of (SMILES, title, values)."""
    chem = pytest.importorskip("rdkit.Chem")
    text = ""
    for smiles, title, values in records:
        block = chem.MolToMolBlock(chem.MolFromSmiles(smiles)) if smiles else "\n\n\nnonsense\n"
        items = "".join(f">  <{name}>\n{value}\n\n" for name, value in values.items())
        text += f"{title}\n" + block.split("\n", 1)[1] + items + "$$$$\n"
    return text


class TestSdf:
    RECORDS = (
        ("CCO", "ethanol", {"y": "1.5", "kind": "alcohol"}),
        ("C[C@H](N)C(=O)O", "alanine", {"y": "2"}),
        ("", "broken", {"y": "3"}),
        ("c1ccccc1", "benzene", {"kind": "ring", "y": "-1"}),
    )

    def test_gives_the_graphs_of_its_smiles_with_titles_and_values(self, write):
        graphs = open_collection(write("m.sdf", sdf(*self.RECORDS)), label_columns="y")
        assert list(graphs.ids) == ["ethanol", "alanine", "benzene"]
        assert graphs.labels[:, 0].tolist() == [1.5, 2, -1]
        assert [row.row for row in graphs.rejected] == [2]
        chem = pytest.importorskip("rdkit.Chem")
        smiles = [chem.MolToSmiles(chem.MolFromSmiles(s)) for s, *_ in self.RECORDS if s]
        expected = open_collection(smiles)
        assert np.array_equal(graphs.nodes.codes, expected.nodes.codes)
        assert np.array_equal(graphs.edge_index, expected.edge_index)

    def test_columns_are_its_values_and_one_called_id_holds_the_ids(self, write):
        path = write("m.sdf", sdf(("CC", "t", {"ID": "x-1", "a": "1"}), ("C", "", {"ID": "x-2", "b": "2"})))
        graphs = open_collection(path, label_columns="*")
        assert graphs.tasks == ("a", "b")
        assert list(graphs.ids) == ["x-1", "x-2"]
        with pytest.raises(DataError, match=r"no column 'c'.*columns: ID, a, b"):
            open_collection(path, label_columns="c")

    def test_may_be_compressed_have_windows_line_ends_and_lack_the_last_mark(self, write):
        text = sdf(*self.RECORDS)
        expected = open_collection(write("m.sdf", text))
        other = text.replace("\n", "\r\n").removesuffix("$$$$\r\n")
        assert open_collection(write("m.sdf.gz", other)) == expected

    def test_a_record_of_any_size_is_a_row(self, write, monkeypatch):
        monkeypatch.setattr("graphsc.data.molecules.sdf.LONGEST_RECORD", 2_000)
        text = sdf(("CC", "a", {}), ("CC", "b", {"note": "x" * 3_000}), ("C", "c", {}))
        graphs = open_collection(write("m.sdf", text))
        assert list(graphs.ids) == ["a", "c"]
        assert graphs.rejected[0].reason == "record is longer than 2,000 characters"

    def test_a_structure_of_very_many_rings_is_refused(self, write):
        """RDKit would take gigabytes."""
        atoms = 600
        bonds = [(a, b) for a in range(1, atoms) for b in range(a + 1, min(a + 4, atoms + 1))][
            : 2 * atoms - 10
        ]
        lines = ["big", "", "", "  0  0  0  0  0  0            999 V3000", "M  V30 BEGIN CTAB"]
        lines += [f"M  V30 COUNTS {atoms} {len(bonds)} 0 0 0", "M  V30 BEGIN ATOM"]
        lines += [f"M  V30 {k} C 0 0 0 0" for k in range(1, atoms + 1)]
        lines += ["M  V30 END ATOM", "M  V30 BEGIN BOND"]
        lines += [f"M  V30 {k} 1 {a} {b}" for k, (a, b) in enumerate(bonds, start=1)]
        lines += ["M  V30 END BOND", "M  V30 END CTAB", "M  END", "$$$$", ""]
        graphs = open_collection(write("m.sdf", "\n".join(lines) + sdf(("C", "c", {}))))
        assert "rings, at most 600 are taken" in graphs.rejected[0].reason


CENSORED = "smiles,pic50,other\nC,5.1,1.5\nCC,>8.4,2\nCCC,<= 4,3\nCCO,~6,>1e999\nO,n.d.,1\nCO,7,~2\n"


@pytest.mark.parametrize(("censored", "expected"), [("drop", [5.1, NAN, NAN, 7]), ("keep", [5.1, 8.4, 4, 7])])
def test_censored_labels_are_counted_and_named_and_the_option_decides(write, censored, expected):
    """The molecules stay: a row of which no number can be read is rejected, one with a limit is not."""
    graphs = open_collection(write("m.csv", CENSORED), label_columns=("pic50", "other"), censored=censored)
    assert graphs.ids.tolist() == [0, 1, 2, 5]
    np.testing.assert_allclose(graphs.labels[:, 0], expected)
    assert [row.reason for row in graphs.rejected] == [
        "label '>1e999' of 'other' is infinite", "label 'n.d.' of 'pic50' is not a number",
    ]  # fmt: skip
    treatment = {"drop": "are left out (censored=drop)", "keep": "are read as their limits"}[censored]
    assert graphs.notes[1:] == (
        f"2 labels of 'pic50' are censored, such as '>8.4', and {treatment}",
        f"1 labels of 'other' are censored, such as '~2', and {treatment}",
    )


def test_a_column_of_relations_without_numbers_holds_classes(write):
    graphs = open_collection(write("m.csv", "smiles,y\nC,<10\nO,>10\nN,<10\n"), label_columns="y")
    assert graphs.classes == {"y": ("<10", ">10")}
    assert graphs.labels[:, 0].tolist() == [0, 1, 0]
    assert graphs.notes == ()


def test_an_unknown_way_of_reading_censored_labels_is_refused(write):
    with pytest.raises(ConfigError, match="'drop' or 'keep'"):
        open_collection(write("m.csv", CENSORED), label_columns="pic50", censored="guess")


def test_molecule_table_keeps_the_row_of_each_molecule(write):
    found = read_molecules(write("m.csv", "smiles\nCCO\nxx\nO\n"))
    assert (found.rows, found.kept, found.smiles) == (3, [0, 2], ["CCO", "O"])
    assert [row.row for row in found.rejected] == [1]
    assert len(found.collection) == 2


def test_many_rows_on_several_processes_are_the_same(monkeypatch):
    from graphsc.data.molecules import conversion

    smiles = ["C" * (1 + k % 7) + "O" for k in range(900)] + ["bad"]
    whole = open_collection(smiles)
    monkeypatch.setattr(conversion, "LEAST_CHUNK", 100)
    parts = open_collection(smiles, workers=2)
    assert parts == whole
    assert parts.notes == whole.notes
    assert parts.rejected == whole.rejected


@pytest.mark.parametrize(
    "source", ["CCO", b"CCO", [], [1, 2], np.zeros(3), np.array([["C"]]), {"C": 1}, None, "x.csv", "x.txt"]
)  # fmt: skip
def test_sources_of_other_readers_are_not_accepted(source):
    assert accepts_smiles(source) is False


def test_without_rdkit_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['rdkit'] = None\n"
        "from graphsc import open_collection\n"
        "from graphsc.core.errors import MissingExtraError\n"
        "try:\n    open_collection(['C'])\nexcept MissingExtraError as error:\n    print(error)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert MissingExtraError.exit_code == 2
    assert printed == "this needs rdkit; pip install 'graphsc[chem]'\n"


def test_estimator_takes_strings():
    from graphsc import GraphEmbedder

    smiles = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCC", "c1ccncc1", "OCCO", "CC#N"]
    embedder = GraphEmbedder(epochs=1, batch_size=4).fit(smiles)
    assert embedder.transform(smiles[:3]).shape == (3, embedder.n_features_out_)
    assert embedder.transform(["N"]).shape[0] == 1
