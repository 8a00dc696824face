"""`graphsc data list`, `get`, `check` and `convert`."""

import json

import pytest


@pytest.fixture
def tiny(tmp_path):
    folder = tmp_path / "TINY"
    folder.mkdir()
    (folder / "TINY_A.txt").write_text("1,2\n2,1\n3,4\n4,3\n")
    (folder / "TINY_graph_indicator.txt").write_text("1\n1\n2\n2\n")
    (folder / "TINY_graph_labels.txt").write_text("0\n1\n")
    return folder


def test_check_prints_statistics_as_plain_lines(run, tiny):
    code, out, err = run("data", "check", tiny)
    facts = dict(line.split("\t", 1) for line in out.splitlines())
    assert (code, err) == (0, "")
    assert facts["graphs"] == "2"
    assert facts["classes"] == "2: 1 of 0 / 1 of 1"


def test_check_prints_json(run, tiny):
    code, out, _ = run("data", "check", tiny, "--json", "--features", "constant")
    statistics = json.loads(out)
    assert code == 0
    assert (statistics["graphs"], statistics["edges_mean"], statistics["features"]) == (2, 1.0, "constant")


def test_convert_writes_a_file_that_check_reads(run, tiny, tmp_path):
    target = tmp_path / "out" / "tiny.safetensors"
    code, out, _ = run("data", "convert", tiny, "--out", target, "--json")
    assert code == 0
    written = json.loads(out)
    code, out, _ = run("data", "check", target, "--json")
    assert code == 0
    assert json.loads(out)["content_hash"] == written["content_hash"]


def test_convert_refuses_another_suffix(run, tiny, tmp_path):
    code, _, err = run("data", "convert", tiny, "--out", tmp_path / "x.csv")
    assert code == 2
    assert err.startswith("error: cannot write .csv")


def test_convert_into_a_folder_that_cannot_be_created(run, tiny, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run("data", "convert", tiny, "--out", tmp_path / "file" / "x.safetensors")
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith("error: cannot write")


def test_list_names_every_data_set(run):
    code, out, _ = run("data", "list", "--json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)}
    assert len(rows) == 140
    assert rows["enzymes"].items() >= {"kind": "proteins", "graphs": 600, "classes": 6, "tasks": 1}.items()
    assert (rows["qm9"]["classes"], rows["qm9"]["tasks"]) == (None, 19)


def test_list_searches_name_kind_and_description(run):
    for word, expected in (("MULTI", 3), ("brains", 3), ("19 targets", 1)):
        code, out, _ = run("data", "list", "--search", word, "--json")
        assert code == 0
        assert len(json.loads(out)) == expected, word


def test_list_of_an_unknown_word_is_an_error(run):
    code, _, err = run("data", "list", "--search", "nothing-like-this")
    assert code == 2
    assert "no data set has 'nothing-like-this'" in err


def test_get_says_where_a_data_set_already_is(run):
    code, out, _ = run("data", "get", "mutag", "--json")
    assert code == 0
    assert json.loads(out)["fetched"] is False


def test_get_of_an_unknown_name_suggests_the_nearest(run):
    code, _, err = run("data", "get", "mutga")
    assert code == 2
    assert "did you mean 'mutag'" in err


def test_a_damaged_collection_is_one_line_and_exit_2(run, tiny, tmp_path):
    target = tmp_path / "tiny.safetensors"
    run("data", "convert", tiny, "--out", target)
    content = bytearray(target.read_bytes())
    content[-1] ^= 1
    target.write_bytes(content)
    code, out, err = run("data", "check", target)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "damaged" in err


@pytest.mark.parametrize("reader", ["--reader", "--door"])
def test_reader_options_reach_the_reader_under_both_names(run, tmp_path, reader):
    (tmp_path / "e.csv").write_text("g,a,b\n0,0,1\n1,0,1\n")
    pairs = ("graph_column=g", "source_column=a", "target_column=b")
    options = [reader, "edges", *(f"{reader}-set={pair}" for pair in pairs)]
    code, out, err = run("data", "check", tmp_path / "e.csv", *options, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["graphs"] == 2
    code, _, err = run("data", "check", tmp_path / "e.csv", reader, "edges", f"{reader}-set", "grph_column=g")
    assert code == 2
    assert "graph_column" in err
