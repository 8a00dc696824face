"""Archives that want out of their folder, or more room than there is."""

import stat
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import DamagedFileError, UnsafeArchiveError
from graphsc.data.datasets.download import open_archive, unpack


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
def test_two_members_in_one_place_are_refused(tmp_path, names):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    with pytest.raises(UnsafeArchiveError, match="place of another"):
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
