"""Collection files: round trips, the format, damage, and lazy verification of large files."""

import copy
import json
import pickle
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file

from graphsc.core.errors import CannotWriteError, DamagedFileError, NotFoundError
from graphsc.core.files import remove_stray_files
from graphsc.data import storage
from graphsc.data.arrays import Strings
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import Column, FeatureTable


@pytest.fixture
def saved(tmp_path):
    """`saved(collection)`: the path it was saved under."""

    def saved(collection):
        path = tmp_path / "saved.safetensors"
        collection.save(path)
        return path

    return saved


def take_apart(content):
    """Header and data of a file, by the safetensors specification."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def put_together(header, data):
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


class TestRoundTrip:
    def test_a_collection_with_every_feature(self, mixed, saved):
        opened = GraphCollection.open(saved(mixed))
        assert opened == mixed
        assert (opened.name, opened.notes) == (mixed.name, mixed.notes)
        assert dict(opened.classes) == dict(mixed.classes)
        opened.check()

    def test_types_and_shapes_are_kept(self, mixed, saved):
        opened = GraphCollection.open(saved(mixed))
        for part in ("node_ptr", "edge_ptr", "edge_index", "labels"):
            assert getattr(opened, part).dtype == getattr(mixed, part).dtype
            assert getattr(opened, part).shape == getattr(mixed, part).shape
        for table in ("nodes", "edges"):
            assert getattr(opened, table).codes.dtype == getattr(mixed, table).codes.dtype

    def test_missing_labels_stay_missing(self, mixed, saved):
        opened = GraphCollection.open(saved(mixed))
        assert np.isnan(opened.labels).tolist() == [[0, 0], [0, 1], [1, 1], [0, 0], [0, 0]]

    def test_64_bit_labels_are_kept_exactly(self, mixed, saved):
        assert GraphCollection.open(saved(mixed)).labels[:2, 0].tolist() == [0.1, 2.0]

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"ids": np.array([2**62, -1, 0])},
            {"ids": Strings.of(["", "", ""])},
            {"ids": Strings.of(["\ud800", "\x00", "日本"])},
            {"labels": np.array([np.nan, np.nan, np.nan])},
            {"labels": np.zeros((3, 0))},
            {"labels": np.array([1e300, 0.1, 0])},
            {"labels": np.array([0, 1, 1]), "classes": {"label": ("", "é")}},
            {"name": "\ud800 é\n\x00", "notes": ["", "日本"]},
            {"nodes": FeatureTable.of(3, floats=np.zeros((3, 0)), float_names=())},
            {"nodes": FeatureTable.of(3, np.array([[0], [299], [5]]), [Column("a", 300)])},
        ],
    )
    def test_odd_parts(self, make, saved, options):
        graphs = [(2, [(0, 1)]), (0, []), (1, [(0, 0)])]
        collection = make(graphs, allow_empty=True, **options)
        opened = GraphCollection.open(saved(collection))
        assert opened == collection
        assert (opened.name, opened.notes) == (collection.name, collection.notes)

    def test_only_empty_graphs(self, make, saved):
        collection = make([(0, []), (0, [])], allow_empty=True)
        assert GraphCollection.open(saved(collection)) == collection

    def test_an_empty_selection(self, mixed, saved):
        assert GraphCollection.open(saved(mixed[[]])) == mixed[[]]

    @given(data=st.data())
    def test_any_graphs(self, make, graph_lists, tmp_path_factory, data):
        collection = make(data.draw(graph_lists), allow_empty=True)
        path = tmp_path_factory.mktemp("any") / "a.safetensors"
        collection.save(path)
        assert GraphCollection.open(path) == collection

    def test_a_slice_of_an_open_file(self, mixed, saved):
        opened = GraphCollection.open(saved(mixed))[1:4]
        assert opened == mixed[1:4]

    def test_saving_an_open_file_over_itself(self, mixed, saved):
        path = saved(mixed)
        GraphCollection.open(path)[1:].save(path)
        assert GraphCollection.open(path) == mixed[1:]

    def test_an_open_file_keeps_its_content_when_another_is_saved_over_it(self, mixed, three, saved):
        opened = GraphCollection.open(saved(mixed))
        saved(three)
        assert opened == mixed

    @pytest.mark.parametrize("of", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
    def test_an_open_file_can_be_copied_to_another_process(self, mixed, saved, of):
        assert of(GraphCollection.open(saved(mixed))) == mixed

    def test_an_open_file_cannot_be_written_to(self, mixed, saved):
        with pytest.raises(ValueError, match="read-only"):
            GraphCollection.open(saved(mixed)).edge_index[0, 0] = 1


class TestFormat:
    def test_the_safetensors_package_reads_the_same_arrays(self, mixed, saved):
        arrays = load_file(saved(mixed))
        expected = {
            "node_ptr": mixed.node_ptr,
            "edge_ptr": mixed.edge_ptr,
            "edge_index": mixed.edge_index,
            "node_codes": mixed.nodes.codes,
            "node_floats": mixed.nodes.floats,
            "edge_codes": mixed.edges.codes,
            "edge_floats": mixed.edges.floats,
            "labels": mixed.labels,
            "id_bytes": mixed.ids.bytes,
            "id_ptr": mixed.ids.ptr,
        }
        assert set(arrays) == set(expected)
        for name, array in expected.items():
            assert arrays[name].dtype == array.dtype
            assert np.array_equal(arrays[name], array, equal_nan=name == "labels")

    def test_the_safetensors_package_reads_the_same_stamp(self, mixed, saved):
        with safe_open(saved(mixed), framework="numpy") as file:
            metadata = file.metadata()
        assert (metadata["format"], metadata["format_version"]) == ("graphsc-collection", "1")
        assert metadata["content_hash"] == mixed.content_hash

    def test_integer_ids_are_one_array(self, three, saved):
        assert load_file(saved(three))["ids"].tolist() == [0, 1, 2]

    def test_every_array_is_aligned_to_its_items(self, mixed, saved):
        content = saved(mixed).read_bytes()
        header, data = take_apart(content)
        sizes = {"U8": 1, "U16": 2, "F32": 4, "F64": 8, "I64": 8}
        specs = [spec for name, spec in header.items() if name != "__metadata__"]
        offset = len(content) - len(data)
        assert [(offset + spec["data_offsets"][0]) % sizes[spec["dtype"]] for spec in specs] == [0] * 10

    def test_same_content_gives_the_same_bytes(self, mixed, saved):
        first = saved(mixed).read_bytes()
        assert saved(GraphCollection.open(saved(mixed))).read_bytes() == first
        assert saved(pickle.loads(pickle.dumps(mixed))).read_bytes() == first


class TestContentHash:
    def test_it_is_the_same_in_memory_and_in_the_file(self, mixed, saved):
        opened = GraphCollection.open(saved(mixed))
        assert opened.content_hash == mixed.content_hash
        assert replace(opened, verifier=None).content_hash == mixed.content_hash

    def test_name_and_notes_do_not_change_it(self, mixed):
        assert replace(mixed, name="other", notes=("x",)).content_hash == mixed.content_hash

    @pytest.mark.parametrize(
        "change",
        [
            lambda c: replace(c, undirected=True),
            lambda c: replace(c, tasks=("a", "b")),
            lambda c: replace(c, classes={}),
            lambda c: replace(c, labels=None),
            lambda c: replace(c, labels=c.labels + 1),
            lambda c: replace(c, ids=np.arange(5)),
            lambda c: replace(c, ids=Strings.of("abcde")),
            lambda c: replace(c, edge_index=c.edge_index[::-1]),
            lambda c: replace(c, nodes=replace(c.nodes, codes=c.nodes.codes[::-1])),
            lambda c: replace(c, nodes=replace(c.nodes, columns=(Column("x", 3), c.nodes.columns[1]))),
            lambda c: replace(c, nodes=replace(c.nodes, float_names=("mass", "charge"))),
            lambda c: replace(c, edges=replace(c.edges, floats=c.edges.floats + 1)),
            lambda c: c.with_features("constant"),
            lambda c: c[:4],
            lambda c: c[[1, 0, 2, 3, 4]],
        ],
    )
    def test_everything_else_changes_it(self, mixed, change):
        assert change(mixed).content_hash != mixed.content_hash


class TestDamage:
    def outcome(self, path, content, original):
        """ "damaged", or "equal" when the file opens as the collection it was."""
        path.write_bytes(content)
        try:
            opened = GraphCollection.open(path)
        except DamagedFileError:
            return "damaged"
        assert opened == original
        opened.check()
        return "equal"

    def test_every_flipped_byte_is_found_or_harmless(self, mixed, saved, tmp_path):
        content = saved(mixed).read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        rng = random.Random(0)
        harmless = []
        for position in range(len(content)):
            flipped = bytearray(content)
            flipped[position] ^= rng.randrange(1, 256)
            if self.outcome(tmp_path / "flipped", flipped, mixed) == "equal":
                harmless.append(position)
        # The name of a hash that older files do not have; a blank of the header may be another blank.
        header = content[:start]
        begin = header.index(b'"words_hash"')
        free = set(range(begin, begin + len(b'"words_hash"')))
        free |= {position for position in range(8, start) if header[position] == ord(" ")}
        assert set(harmless) <= free

    def test_every_single_bit_of_the_data_is_found(self, three, saved, tmp_path):
        content = saved(three).read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        for position in range(start, len(content)):
            flipped = bytearray(content)
            flipped[position] ^= 1 << (position % 8)
            assert self.outcome(tmp_path / "flipped", flipped, three) == "damaged"

    def test_every_truncation_is_found(self, mixed, saved, tmp_path):
        content = saved(mixed).read_bytes()
        lengths = {0, 1, 7, 8, 9, len(content) - 1, *random.Random(0).sample(range(len(content)), 60)}
        for length in sorted(lengths):
            assert self.outcome(tmp_path / "short", content[:length], mixed) == "damaged"

    @pytest.mark.parametrize("extra", [b"\x00", b" " * 8, b"x" * 1000])
    def test_bytes_at_the_end_are_found(self, mixed, saved, tmp_path, extra):
        content = saved(mixed).read_bytes() + extra
        assert self.outcome(tmp_path / "long", content, mixed) == "damaged"

    @pytest.mark.parametrize("length", [0, 2**16, 2**27, 2**63 - 1, 2**63, 2**64 - 1])
    def test_a_header_longer_than_the_file_is_refused(self, mixed, saved, tmp_path, length):
        content = length.to_bytes(8, "little") + saved(mixed).read_bytes()[8:]
        assert self.outcome(tmp_path / "header", content, mixed) == "damaged"

    @pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\x80\x04K\x01.", b"PK\x03\x04" * 9, b"{}" * 9])
    def test_other_files_are_refused(self, mixed, tmp_path, content):
        assert self.outcome(tmp_path / "other", content, mixed) == "damaged"

    def test_a_deeply_nested_header_is_refused(self, mixed, tmp_path):
        assert self.outcome(tmp_path / "deep", put_together(b"[" * 100_000, b""), mixed) == "damaged"

    def test_the_message_says_that_the_file_is_damaged(self, mixed, saved):
        path = saved(mixed)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(DamagedFileError, match=rf"collection is damaged: .*{path.name}"):
            GraphCollection.open(path)

    def test_a_newer_version_is_refused_in_words(self, mixed, saved):
        path = saved(mixed)
        header, data = take_apart(path.read_bytes())
        header["__metadata__"]["format_version"] = "2"
        path.write_bytes(put_together(header, data))
        with pytest.raises(DamagedFileError, match=r"format version 2.*upgrade graphsc"):
            GraphCollection.open(path)

    def test_a_safetensors_file_of_others_is_refused(self, tmp_path):
        from safetensors.numpy import save_file

        save_file({"node_ptr": np.zeros(2, np.int64)}, tmp_path / "other.safetensors")
        with pytest.raises(DamagedFileError, match="not a GraphSC collection file"):
            GraphCollection.open(tmp_path / "other.safetensors")

    def test_a_missing_file_is_not_called_damaged(self, tmp_path):
        with pytest.raises(NotFoundError, match="No such file"):
            GraphCollection.open(tmp_path / "nowhere.safetensors")

    def test_a_folder_is_not_a_collection(self, tmp_path):
        with pytest.raises(NotFoundError, match="cannot open collection"):
            GraphCollection.open(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


class TestHeader:
    @given(header=JSON)
    def test_any_json_is_refused(self, three, tmp_path_factory, header):
        path = tmp_path_factory.mktemp("json") / "a.safetensors"
        path.write_bytes(put_together(header, bytes(64)))
        with pytest.raises(DamagedFileError):
            GraphCollection.open(path)

    @given(data=st.data())
    def test_a_header_with_any_part_replaced_is_refused_or_harmless(self, mixed, tmp_path_factory, data):
        path = tmp_path_factory.mktemp("json") / "a.safetensors"
        mixed.save(path)
        header, content = take_apart(path.read_bytes())
        inner = data.draw(st.sampled_from(sorted(header)))
        owner = header
        if data.draw(st.booleans()):
            owner, inner = header[inner], data.draw(st.sampled_from(sorted(header[inner])))
        owner[inner] = data.draw(JSON | st.lists(st.floats() | st.integers(), min_size=1, max_size=2))
        path.write_bytes(put_together(header, content))
        try:
            opened = GraphCollection.open(path)
        except DamagedFileError:
            return
        assert opened == mixed

    @pytest.mark.parametrize("shape", [[float("inf")], [float("nan")], [-1, -8], [10**30], ["8"], [[8]], 8])
    def test_an_invalid_shape_is_refused(self, three, saved, shape):
        path = saved(three)
        header, content = take_apart(path.read_bytes())
        header["edge_ptr"]["shape"] = shape
        path.write_bytes(put_together(header, content))
        with pytest.raises(DamagedFileError):
            GraphCollection.open(path)


class TestInconsistentArrays:
    """Files whose hashes are right and whose content is not: a broken program wrote them."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda c: replace(c, node_ptr=c.node_ptr[::-1].copy()),
            lambda c: replace(c, node_ptr=c.node_ptr[:-1]),
            lambda c: replace(c, node_ptr=c.node_ptr + 1),
            lambda c: replace(c, edge_ptr=c.edge_ptr * 2),
            lambda c: replace(c, edge_ptr=c.edge_ptr[:0]),
            lambda c: replace(c, edge_index=c.edge_index[:, :-1]),
            lambda c: replace(c, edge_index=c.edge_index.ravel()),
            lambda c: replace(c, labels=c.labels[:, :1]),
            lambda c: replace(c, labels=c.labels[1:]),
            lambda c: replace(c, ids=Strings.of("ab")),
            lambda c: replace(c, ids=np.arange(2)),
            lambda c: replace(c, ids=Strings(c.ids.bytes, c.ids.ptr[::-1].copy())),
            lambda c: replace(c, ids=Strings(c.ids.bytes[:-1], c.ids.ptr)),
            lambda c: replace(c, nodes=replace(c.nodes, columns=c.nodes.columns[:1])),
            lambda c: replace(c, nodes=replace(c.nodes, float_names=("charge",))),
            lambda c: replace(c, edges=replace(c.edges, floats=c.edges.floats[1:])),
        ],
    )
    def test_arrays_that_do_not_fit_each_other_are_refused(self, mixed, saved, change):
        path = saved(change(mixed))
        with pytest.raises(DamagedFileError):
            GraphCollection.open(path)


@pytest.mark.parametrize("cuts", [[0, 5], [0, 1, 5], [0, 2, 3, 4, 5]])
def test_parts_are_saved_as_their_concatenation_is(mixed, tmp_path, cuts):
    parts = [mixed[start:stop] for start, stop in pairwise(cuts)]
    content = storage.save_parts(parts, tmp_path / "a.safetensors", mixed.name, mixed.notes)
    mixed.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert content == mixed.content_hash


SAVE_FOR_EVER = """
import sys
from graphsc.data.collection import GraphCollection
whole = GraphCollection.open(sys.argv[1])
part = whole[1:]
print("saving", flush=True)
while True:
    part.save(sys.argv[1])
    whole.save(sys.argv[1])
"""


def test_a_process_killed_while_saving_leaves_one_collection_or_the_other(mixed, saved):
    path = saved(mixed)
    child = subprocess.Popen([sys.executable, "-c", SAVE_FOR_EVER, str(path)], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"saving\n"
    time.sleep(random.uniform(0.02, 0.2))
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert GraphCollection.open(path) in (mixed, mixed[1:])
    remove_stray_files(path.parent)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_failed_save_leaves_the_old_collection(mixed, three, saved, monkeypatch):
    path = saved(mixed)

    def disk_full(array):
        raise OSError(28, "No space left on device")

    layout = storage.layout_of(three)
    monkeypatch.setattr(storage, "layout_of", lambda _: layout)
    monkeypatch.setattr(storage.Stream, "bytes", disk_full)
    with pytest.raises(CannotWriteError, match="No space left"):
        three.save(path)
    assert GraphCollection.open(path) == mixed
    assert [file.name for file in path.parent.iterdir()] == [path.name]


# Large files, simulated by blocks of a few bytes and no verification at opening


GRAPHS, NODES = 60, 8
USED, FAR = 30, 3


def set_block(patch, size):
    patch.setattr(storage, "BLOCK", size)
    patch.setattr(storage, "WHOLE_LIMIT", 0)


@pytest.fixture
def large(make, monkeypatch):
    """Rings of eight nodes, in a file of blocks of 64 bytes."""
    set_block(monkeypatch, 64)
    ring = [(i, (i + 1) % NODES) for i in range(NODES)]
    nodes, edges = np.arange(GRAPHS * NODES), np.arange(GRAPHS * NODES)
    return make(
        [(NODES, ring)] * GRAPHS,
        nodes=FeatureTable.of(len(nodes), (nodes % 3)[:, None], [Column("a", 3)], nodes[:, None] / 2),
        edges=FeatureTable.of(len(edges), (edges % 2)[:, None], [Column("b", 2)], edges[:, None] / 4),
        labels=np.arange(GRAPHS),
    )


def span_of(path, name):
    """Where an array lies in the file, by the safetensors specification."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    begin, end = json.loads(content[8 : 8 + length])[name]["data_offsets"]
    return 8 + length + begin, 8 + length + end


def flip(path, *positions):
    content = bytearray(path.read_bytes())
    for position in positions:
        content[position] ^= 0x10
    path.write_bytes(content)


def place(path, name, graph):
    """The middle of the bytes of one graph in one array; the sources half of `edge_index`."""
    begin, end = span_of(path, name)
    if name == "edge_index":
        end = begin + (end - begin) // 2
    return begin + (end - begin) * (2 * graph + 1) // (2 * GRAPHS)


ARRAYS = ["node_codes", "node_floats", "edge_codes", "edge_floats", "edge_index"]

WAYS_TO_USE = {
    "one": lambda c: c[USED],
    "slice": lambda c: c[USED : USED + 1],
    "step": lambda c: c[USED::100],
    "list": lambda c: c[[0, USED]],
    "mask": lambda c: c[np.arange(GRAPHS) == USED],
    "negative": lambda c: c[USED - GRAPHS],
    "graph": lambda c: c.graph(USED),
    "graphs": lambda c: list(c.graphs()),
    "batch": lambda c: GraphBatch.gather(c, np.array([USED])),
    "whole batch": GraphBatch.of,
    "degrees": lambda c: c.degrees,
    "features": lambda c: c.with_features(c.features),
    "named features": lambda c: c.with_features("degree").degrees,
    "concatenate": lambda c: GraphCollection.concatenate([c, c]),
    "describe": lambda c: c.describe(),
    "check": lambda c: c.check(),
    "copy": lambda c: c.__getstate__(),
    "hash": lambda c: replace(c).content_hash,
}


@pytest.fixture
def path(large, tmp_path):
    path = tmp_path / "large.safetensors"
    large.save(path)
    return path


def test_an_undamaged_large_file_is_read(large, path):
    opened = GraphCollection.open(path)
    opened.check()
    assert opened == large
    assert opened[USED:] == large[USED:]


@pytest.mark.parametrize("array", ARRAYS)
def test_damage_is_noticed_when_its_graph_is_used_and_not_before(path, large, array):
    flip(path, place(path, array, USED))
    opened = GraphCollection.open(path)
    assert opened[FAR] == large[FAR]
    with pytest.raises(DamagedFileError, match=r"block \d+ does not match its hash .*convert it again"):
        opened[USED]


def test_damage_of_the_destinations_is_noticed_too(path):
    begin, end = span_of(path, "edge_index")
    flip(path, place(path, "edge_index", USED) + (end - begin) // 2)
    with pytest.raises(DamagedFileError):
        GraphCollection.open(path)[USED]


@pytest.mark.parametrize("way", WAYS_TO_USE)
def test_every_way_to_use_a_graph_notices(path, way):
    flip(path, place(path, "edge_index", USED))
    opened = GraphCollection.open(path)
    with pytest.raises(DamagedFileError):
        WAYS_TO_USE[way](opened)


@pytest.mark.parametrize("array", ["node_ptr", "edge_ptr", "labels", "ids"])
def test_pointers_labels_and_ids_are_verified_at_opening(path, array):
    flip(path, place(path, array, USED))
    with pytest.raises(DamagedFileError, match="does not match its hash"):
        GraphCollection.open(path)


def test_opening_does_not_read_the_graphs(path, large):
    begin, end = span_of(path, "node_floats")
    flip(path, *range(begin + 64, end - 64))
    assert GraphCollection.open(path).labels.tolist() == large.labels.tolist()


def test_check_verifies_blocks_again(path, large):
    opened = GraphCollection.open(path)
    opened[:]
    with open(path, "r+b") as file:  # damage in place, under the map
        position = place(path, "edge_codes", USED)
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(DamagedFileError):
        opened.check()


def test_a_small_file_is_verified_at_opening(path, monkeypatch):
    monkeypatch.setattr(storage, "WHOLE_LIMIT", 10**6)
    flip(path, place(path, "edge_index", USED))
    with pytest.raises(DamagedFileError, match="does not match its hash"):
        GraphCollection.open(path)


def test_a_truncated_file_is_refused_at_opening(path):
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedFileError):
        GraphCollection.open(path)


@given(data=st.data(), block=st.sampled_from([1, 3, 8, 16, 50]), columns=st.booleans())
def test_any_rows_of_any_graphs_in_blocks_of_any_size(
    make, graph_lists, tmp_path_factory, data, block, columns
):
    graphs = data.draw(graph_lists)
    count = sum(len(edges) for _, edges in graphs)
    edges = FeatureTable.of(count, np.zeros((count, 1), int), [Column("b", 2)], np.ones((count, 1)))
    collection = make(graphs, allow_empty=True, edges=edges if columns else None)
    rows = data.draw(st.lists(st.integers(0, len(graphs) - 1), max_size=5))
    path = tmp_path_factory.mktemp("blocks") / "a.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        set_block(patch, block)
        collection.save(path)
        opened = GraphCollection.open(path)
        assert opened[rows] == collection[rows]
        assert opened == collection


def test_empty_arrays_at_the_end_of_the_last_block_are_verified_safely(make, tmp_path, monkeypatch):
    set_block(monkeypatch, 8)
    edges = FeatureTable.of(0, np.zeros((0, 1), int), [Column("b", 2)])
    nodes = FeatureTable.of(3, floats=np.ones((3, 2)))  # 24 bytes that are not verified at opening
    collection = make([(1, []), (2, [])], nodes=nodes, edges=edges)
    collection.save(tmp_path / "a.safetensors")
    assert GraphCollection.open(tmp_path / "a.safetensors")[[1]] == collection[[1]]


@given(data=st.data())
def test_no_flip_ever_gives_a_wrong_graph(make, tmp_path_factory, data):
    collection = make([(2, [(0, 1)]), (3, [(2, 1), (1, 0)]), (1, [(0, 0)]), (0, [])], allow_empty=True)
    path = tmp_path_factory.mktemp("flips") / "a.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        set_block(patch, 16)
        collection.save(path)
        flip(path, data.draw(st.integers(0, path.stat().st_size - 1)))
        for row in range(len(collection)):
            with suppress(DamagedFileError):
                assert GraphCollection.open(path)[row] == collection[row]
