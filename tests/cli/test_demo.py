"""`graphsc demo` prints a comparison and writes a report."""

from html.parser import HTMLParser

import pytest

from graphsc.experiments.demo import METHODS


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.texts, self.images = [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.images += tag == "img"

    def handle_data(self, data):
        self.texts.append(data.strip())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


def test_demo_prints_the_table_and_the_path_of_the_report(run, folder):
    code, out, _ = run("demo", "motifs:60", "--seeds", 1, "--jobs", 1, "--out", folder)
    assert code == 0
    for method in METHODS:
        assert f"│ {method} " in out
    assert "no test fold is used to choose anything" in " ".join(out.split())
    assert out.rstrip().splitlines()[-1] == f"report: {folder / 'report.html'}"


def test_the_report_has_the_table_the_protocol_and_five_figures(folder):
    page = Page((folder / "report.html").read_text())
    assert page.images == 5
    for method in METHODS:
        assert method in page.texts
    assert any("The last epoch is evaluated" in text for text in page.texts)


def test_a_second_demo_trains_nothing_again(run, folder):
    (path,) = (folder / "results").glob("*.jsonl")
    before = path.stat().st_mtime_ns
    assert len(path.read_text().splitlines()) == len(METHODS)
    code, _, _ = run("demo", "motifs:60", "--seeds", 1, "--jobs", 1, "--out", folder)
    assert code == 0
    assert path.stat().st_mtime_ns == before
