"""Downloads from a real server on this machine: whole, verified and bounded, or nothing at all."""

import hashlib
import io
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from graphsc.core.errors import DataError, NotFoundError, UnsafeArchiveError
from graphsc.data.datasets import download as fetch
from graphsc.data.datasets.catalog import NAMED, find
from graphsc.data.datasets.download import download, fetch_named

ENTRY = NAMED["reddit-multi-5k"]


@pytest.fixture
def serve():
    """`serve({"/x": content})` starts a server and gives its address."""
    servers = []

    def start(pages, declared=None, stall=False):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path not in pages:
                    self.send_error(404)
                    return
                self.send_response(200)
                length = declared if declared is not None else len(pages[self.path])
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(pages[self.path])
                if stall:
                    self.wfile.flush()
                    time.sleep(3)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


GOOD = zipped(
    {
        "REDDIT-MULTI-5K/REDDIT-MULTI-5K_A.txt": "1,2\n2,1\n",
        "REDDIT-MULTI-5K/REDDIT-MULTI-5K_graph_indicator.txt": "1\n1\n",
    }
)


def test_download_keeps_the_bytes_and_reports_progress(serve, tmp_path):
    seen = []
    address = serve({"/x": b"abc" * 1000})
    digest = hashlib.sha256(b"abc" * 1000).hexdigest()
    download(address + "/x", tmp_path / "x", sha256=digest, progress=lambda *step: seen.append(step))
    assert (tmp_path / "x").read_bytes() == b"abc" * 1000
    assert seen[-1] == (3000, 3000)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"size_cap": 10}, "larger than 10 bytes"), ({"sha256": "0" * 64}, "sha256 of the download")],
)
def test_wrong_download_leaves_nothing(serve, tmp_path, options, message):
    address = serve({"/x": b"a" * 100})
    with pytest.raises(DataError, match=message):
        download(address + "/x", tmp_path / "x", **options)
    assert list(tmp_path.iterdir()) == []


def test_stalled_server_ends_within_the_time_out(serve, tmp_path):
    address = serve({"/x": b"a" * 10}, declared=100, stall=True)
    start = time.monotonic()
    with pytest.raises((NotFoundError, DataError)):
        download(address + "/x", tmp_path / "x", timeout=0.3)
    assert time.monotonic() - start < 2.5
    assert list(tmp_path.iterdir()) == []


def test_short_download_is_refused(serve, tmp_path):
    address = serve({"/x": b"a" * 10}, declared=100)
    with pytest.raises((NotFoundError, DataError)):
        download(address + "/x", tmp_path / "x", timeout=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["http://example.org/x", "file:///etc/passwd", "ftp://x/y"])
def test_only_https_leaves_this_machine(tmp_path, address):
    with pytest.raises(DataError, match="only https"):
        download(address, tmp_path / "x")


def test_named_set_is_fetched_checked_and_found(serve, cache):
    address = serve({"/z": GOOD})
    folder = fetch_named(ENTRY, address=address + "/z")
    assert folder == cache / "REDDIT-MULTI-5K"
    assert find(ENTRY) == folder
    assert [path.name for path in cache.iterdir()] == ["REDDIT-MULTI-5K"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (zipped({"../x_A.txt": "1,2\n"}), UnsafeArchiveError),
        (zipped({"T/readme.txt": "hello"}), DataError),
        (zipped({"T/T_A.txt": "1,9\n", "T/T_graph_indicator.txt": "1\n"}), DataError),
    ],
)
def test_unsafe_or_wrong_archive_leaves_nothing(serve, cache, tmp_path, content, error):
    address = serve({"/z": content})
    with pytest.raises(error):
        fetch_named(ENTRY, address=address + "/z")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_wrong_content_hash_leaves_nothing(serve, cache):
    from dataclasses import replace

    address = serve({"/z": GOOD})
    with pytest.raises(DataError, match="sha256 of the graphs"):
        fetch_named(replace(ENTRY, content_hash="0" * 64), address=address + "/z")
    assert list(cache.iterdir()) == []


def test_missing_page_says_where_it_looked_and_where_to_put_the_file(serve, cache):
    with pytest.raises(NotFoundError) as error:
        fetch_named(ENTRY, address=serve({}) + "/z")
    assert "404" in str(error.value)
    assert str(cache) in str(error.value)
    assert "put REDDIT-MULTI-5K.zip into" in str(error.value)


def test_unreachable_server_is_one_error(cache, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT", 0.5)
    with pytest.raises(NotFoundError, match="cannot fetch"):
        fetch_named(ENTRY, address="http://127.0.0.1:9/z")


def test_leftovers_of_a_killed_fetch_are_removed(serve, cache):
    stray = cache / ".REDDIT-MULTI-5K.999999999.tmp"
    stray.mkdir(parents=True)
    (stray / "half.zip").write_bytes(b"x")
    fetch_named(ENTRY, address=serve({"/z": GOOD}) + "/z")
    assert not stray.exists()
