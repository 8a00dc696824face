"""Downloads from a local server, and archives: verified and bounded, or nothing at all."""

import gzip
import hashlib
import io
import socket
import stat
import threading
import time
import zipfile
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError, UnsafeArchiveError
from graphsc.data.datasets import download as download_module
from graphsc.data.datasets.catalog import NAMED, find
from graphsc.data.datasets.download import download, fetch_named, open_archive, unpack

ENTRY = replace(NAMED["reddit-multi-5k"], content_hash=None)  # small archives stand in for it


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


# Answers that are cut short, malformed or no http at all, as bytes on the wire.
ANSWERS = {
    "nothing": b"",
    "no http": b"SSH-2.0-OpenSSH_9.6\r\n",
    "bad status": b"HTTP/1.1 abc\r\n\r\n",
    "endless status line": b"HTTP/1.1 200 " + b"a" * 70_000 + b"\r\n\r\n",
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
    "length cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
    "length beyond any": b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999\r\n\r\nabc",
    "chunk cut short": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nabc",
    "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc",
    "last chunk missing": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "redirect to nowhere": b"HTTP/1.1 302 Found\r\nLocation: http://[::1/\r\nContent-Length: 0\r\n\r\n",
    "redirect with a space": b"HTTP/1.1 302 Found\r\nLocation: https://a b/\r\nContent-Length: 0\r\n\r\n",
    "redirect without a place": b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
}


@pytest.fixture
def answer():
    """`answer(content)` starts a server that sends these bytes to anyone, and gives its address."""
    sockets = []

    def start(content):
        server = socket.create_server(("127.0.0.1", 0))
        sockets.append(server)

        def talk():
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(content)

        threading.Thread(target=talk, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/x"

    yield start
    for one in sockets:
        one.close()


@pytest.mark.parametrize("name", ANSWERS)
def test_malformed_answer_is_one_sentence_and_leaves_nothing(answer, tmp_path, name):
    with pytest.raises((NotFoundError, DataError)) as error:
        download(answer(ANSWERS[name]), tmp_path / "x", timeout=2)
    assert "127.0.0.1" in str(error.value)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def redirect_to(address):
    return f"HTTP/1.1 302 Found\r\nLocation: {address}\r\nContent-Length: 0\r\n\r\n".encode()


@pytest.mark.parametrize(
    "target",
    ["http://192.0.2.1/x", "http://127.0.0.1:80@192.0.2.1/x", "ftp://192.0.2.1/x", "file:///etc/passwd"],
)
def test_redirect_is_checked_like_the_first_address(answer, tmp_path, target):
    """192.0.2.1 is an address of documentation: a download that tried it would end in a time-out."""
    with pytest.raises((DataError, NotFoundError), match=r"only https|answers 302"):
        download(answer(redirect_to(target)), tmp_path / "x", timeout=1)
    assert list(tmp_path.iterdir()) == []


def test_second_redirect_is_checked_too(answer, tmp_path):
    second = answer(redirect_to("http://192.0.2.1/x"))
    with pytest.raises(DataError, match="redirects to http://192"):
        download(answer(redirect_to(second)), tmp_path / "x", timeout=1)


def test_redirect_on_this_machine_is_followed(answer, serve, tmp_path):
    download(answer(redirect_to(serve({"/y": b"abc"}) + "/y")), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"abc"


def test_server_elsewhere_cannot_lead_to_this_machine(answer, serve, tmp_path, monkeypatch):
    """As if the first server were another machine's."""
    address = answer(redirect_to(serve({"/y": b"abc"}) + "/y"))
    monkeypatch.setattr(download_module, "_is_allowed", lambda _: True)
    monkeypatch.setattr(download_module, "_is_local", lambda asked: asked != address)
    with pytest.raises(DataError, match=r"redirects to http://127\.0\.0\.1"):
        download(address, tmp_path / "x")


def test_redirects_without_end_are_one_error(tmp_path):
    server = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{server.getsockname()[1]}/x"

    def talk():
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(redirect_to(address))

    threading.Thread(target=talk, daemon=True).start()
    with pytest.raises(NotFoundError, match="the server answers 302"):
        download(address, tmp_path / "x", timeout=2)
    server.close()


def test_server_that_sends_a_byte_at_a_time_ends_after_the_total_time(tmp_path, monkeypatch):
    monkeypatch.setattr(download_module, "TOTAL_TIME", 0.5)
    server = socket.create_server(("127.0.0.1", 0))

    def talk():
        with suppress(OSError):
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                for _ in range(100):
                    connection.sendall(b"a")
                    time.sleep(0.1)

    threading.Thread(target=talk, daemon=True).start()
    start = time.monotonic()
    with pytest.raises(DataError, match="takes longer than"):
        download(f"http://127.0.0.1:{server.getsockname()[1]}/x", tmp_path / "x", timeout=5)
    assert time.monotonic() - start < 4
    server.close()


@pytest.mark.parametrize(
    "address",
    ["http://example.org/x", "file:///etc/passwd", "ftp://x/y", "http://127.0.0.1:80@192.0.2.1/x", "x"],
)
def test_only_https_leaves_this_machine(tmp_path, address):
    with pytest.raises(DataError, match="only https"):
        download(address, tmp_path / "x")


def test_set_of_ogb_is_fetched_checked_and_found(serve, cache):
    tables = {
        "edge": "0,1\n", "num-node-list": "2\n", "num-edge-list": "1\n", "node-feat": "5\n5\n",
        "edge-feat": "0\n", "graph-label": "1\n",
    }  # fmt: skip
    packed = zipped({f"hiv/raw/{name}.csv.gz": gzip.compress(text.encode()) for name, text in tables.items()})
    folder = fetch_named(NAMED["ogbg-molhiv"], address=serve({"/z": packed}) + "/z")
    assert folder == find(NAMED["ogbg-molhiv"]) == cache / "ogbg-molhiv"


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
    monkeypatch.setattr(download_module, "TIMEOUT", 0.5)
    with pytest.raises(NotFoundError, match="cannot fetch"):
        fetch_named(ENTRY, address="http://127.0.0.1:9/z")


def test_leftovers_of_a_killed_fetch_are_removed(serve, cache):
    stray = cache / ".REDDIT-MULTI-5K.999999999.tmp"
    stray.mkdir(parents=True)
    (stray / "half.zip").write_bytes(b"x")
    fetch_named(ENTRY, address=serve({"/z": GOOD}) + "/z")
    assert not stray.exists()


# Archives


def archive_with(path, name, content="x", mode=None):
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo(name)
        if mode is not None:
            info.external_attr = mode << 16
        archive.writestr(info, content)
    return path


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/x", "//etc/x", "C:/x", "..\\x", "a\\..\\..\\x", "\\x", "\\\\x"]
)
def test_paths_that_lead_outside_are_refused(tmp_path, name):
    with pytest.raises(UnsafeArchiveError, match="unsafe archive member"):
        open_archive(archive_with(tmp_path / "x.zip", name))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(tmp_path, kind):
    path = archive_with(tmp_path / "x.zip", "link", "/etc/passwd", kind | 0o777)
    with pytest.raises(UnsafeArchiveError, match="link or a device"):
        open_archive(path)


def test_declared_size_of_ten_gigabytes_is_refused(tmp_path):
    path = archive_with(tmp_path / "x.zip", "big", "x")
    content = bytearray(path.read_bytes())
    # The uncompressed size stands at offset 24 of the central directory's entry; 32 bits of it
    # reach 4 GiB, so three such members declare more than any cap.
    entry = content.index(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(UnsafeArchiveError, match="unpacked size"):
        open_archive(path, size_cap=10**9)


def test_not_a_zip_is_called_damaged(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"hello")
    with pytest.raises(DamagedFileError, match="not a readable zip"):
        open_archive(tmp_path / "x.zip")


def test_unpack_writes_what_the_archive_holds(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("A/one.txt", "1")
        archive.writestr("A/b/two.txt", "2")
    with open_archive(tmp_path / "x.zip") as archive:
        unpack(archive, tmp_path / "out")
    found = {str(p.relative_to(tmp_path / "out")): p.read_text() for p in (tmp_path / "out").rglob("*.txt")}
    assert found == {"A/one.txt": "1", "A/b/two.txt": "2"}


PIECES = st.sampled_from(["..", ".", "", "a", "b.txt", "/", "\\", "C:", "\u00e9", " ", "~", "...", "CON"])


@given(
    names=st.lists(st.lists(PIECES, min_size=1, max_size=4), min_size=1, max_size=4),
    slash=st.sampled_from("/\\"),
)
def test_no_name_ever_writes_outside_the_folder(tmp_path_factory, names, slash):
    root = tmp_path_factory.mktemp("zip")
    with zipfile.ZipFile(root / "x.zip", "w") as archive:
        for pieces in names:
            info = zipfile.ZipInfo("x")
            info.filename = slash.join(pieces) or "."  # past what ZipInfo tidies up by itself
            archive.writestr(info, "x")
    try:
        with open_archive(root / "x.zip") as archive:
            unpack(archive, root / "inside" / "out")
    except (UnsafeArchiveError, DamagedFileError):
        pass
    outside = [
        path for path in root.rglob("*") if path.is_file() and root / "inside" / "out" not in path.parents
    ]
    assert outside == [root / "x.zip"]


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a"), ("a", "./a"), ("a", "a")])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_with_one_path_are_refused(tmp_path, names):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    with pytest.raises(UnsafeArchiveError, match="path of another"):
        open_archive(tmp_path / "x.zip")


def test_member_without_a_name_is_refused(tmp_path):
    path = archive_with(tmp_path / "x.zip", "y")
    content = path.read_bytes().replace(b"y", b"", 1)  # the name in front of the data
    end = content.index(b"PK\x01\x02")
    content = bytearray(content[:end] + content[end:].replace(b"y", b"", 1))
    content[26:28] = (0).to_bytes(2, "little")  # its length there
    content[end + 28 : end + 30] = (0).to_bytes(2, "little")  # and in the directory
    tail = content.index(b"PK\x05\x06")
    content[tail + 12 : tail + 16] = (tail - end).to_bytes(4, "little")
    content[tail + 16 : tail + 20] = end.to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(UnsafeArchiveError, match="has no name"):
        open_archive(path)
