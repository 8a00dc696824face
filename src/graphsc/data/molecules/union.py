"""The union of several lists of molecules as one collection, without duplicates and without test molecules.

A molecule that a source before it has, by its canonical SMILES, is left out. So is every molecule that is in
the scaffold-split test part of one of the eight MoleculeNet sets, by the first block of its InChIKey: another
stereoisomer, salt form of the same connections or tautomer is left out too. Pre-training on what is left has
seen no test molecule.

Canonical SMILES and InChIKeys of millions of molecules would take an hour. They are computed only where a
hash of the graph, which takes no RDKit, leaves the question open: molecules with equal canonical SMILES have
equal atoms, bonds and environments, and molecules with equal InChIKeys have equal skeletons of heavy atoms.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.files import file_lock, read_json, write_json
from graphsc.core.registry import require
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.datasets.catalog import cache_folder
from graphsc.data.molecules.conversion import RowOptions, convert_smiles, prepare
from graphsc.data.molecules.descriptors import DESCRIPTORS, stored_descriptors
from graphsc.data.molecules.featurize import ATOM
from graphsc.data.readers import find_reader, find_saved
from graphsc.data.storage import save_parts

CHUNK = 20_000  # graphs at once
RADIUS = 4  # of the environments that a graph's hash is made of
TEST_KEYS = Path(__file__).with_name("test_keys.txt.xz")
BLOCK = 14  # letters of an InChIKey that stand for the connections
VERSION = 2  # of what a union is made of; another one is made anew

Progress = Callable[[str, int, int], None]  # what is done, molecules done, molecules in total

# Atoms whose bonds InChI keeps. It takes bonds to metals apart, so that their skeletons say nothing.
_ORGANIC = ("B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "As", "Se", "Br", "I")


@dataclass(frozen=True)
class Part:
    """A source of a union, and what became of its molecules."""

    source: str
    weight: float
    molecules: int  # that could be read
    rejected: int  # rows without a usable molecule
    excluded: int  # molecules of a test set
    duplicates: int  # molecules that the source, or one before it, has already
    kept: int


@dataclass(frozen=True)
class Union:
    """Molecules of several sources in one collection, those of a source after those of the one before."""

    collection: GraphCollection
    parts: tuple[Part, ...]
    path: Path

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weight of the molecules at these positions of the collection."""
        ends = np.cumsum([part.kept for part in self.parts])
        weights = np.array([part.weight for part in self.parts])
        found: NDArray[np.float64] = weights[np.searchsorted(ends, rows, side="right")]
        return found

    def with_descriptors(
        self, rows: NDArray[np.int64], progress: Progress = lambda what, done, total: None
    ) -> GraphCollection:
        """The collection with `molecule_descriptors` of the molecules at these ascending positions.

        They are kept in a file beside the union. Those of other molecules are zero unless an earlier call
        asked for them.
        """
        names = hashlib.sha256(",".join(DESCRIPTORS).encode()).hexdigest()[:8]
        path = self.path.with_name(f"{self.path.stem}-descriptors-{names}.npy")
        values = stored_descriptors(
            path, len(self.collection), rows, self._smiles, progress=partial(progress, "descriptors")
        )
        return replace(self.collection, descriptors=values)

    def _smiles(self, rows: NDArray[np.int64]) -> Iterator[str]:
        """The SMILES of the molecules at these ascending positions, as their sources have them."""
        ids, begin = self.collection.ids, 0
        assert isinstance(ids, np.ndarray)  # noqa: S101 - positions in a source
        for part in self.parts:
            own = ids[rows[(rows >= begin) & (rows < begin + part.kept)]]
            begin += part.kept
            if len(own):
                source, texts, fingerprint = _prepare(part.source)
                converted, _ = _converted(source, fingerprint, self.path.parent, None, _silent)
                assert isinstance(converted.ids, np.ndarray)  # noqa: S101 - row numbers
                yield from _pick(texts, converted.ids[own])

    def facts(self) -> list[dict[str, object]]:
        """The parts, for configs and cards."""
        return [asdict(part) for part in self.parts]

    def notes(self) -> list[str]:
        """A sentence per source."""
        return [
            f"{part.source}: {part.molecules:,} molecules, {part.excluded:,} of downstream test sets "
            f"excluded by InChIKey, {part.duplicates:,} duplicates left out, {part.kept:,} kept, "
            f"weight {part.weight:g}"
            for part in self.parts
        ]


def open_union(
    sources: Sequence[tuple[str, float]],
    *,
    folder: Path | None = None,
    workers: int | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Union:
    """Open the union of these sources of SMILES, which is made at the first call and kept.

    Args:
        sources: Names or files, each with the weight it is sampled by, which is not part of the file.
        folder: Where converted sources and the union are kept; the cache folder by default.
        workers: Processes of a conversion; one per core by default.
        progress: Called as the work goes on.
    """
    folder = folder or cache_folder() / "unions"
    prepared = [_prepare(source) for source, _ in sources]
    identity = {
        "version": VERSION,
        "sources": [fingerprint for _, _, fingerprint in prepared],
        "rdkit": require("rdkit").__version__,
        "test keys": hashlib.sha256(TEST_KEYS.read_bytes()).hexdigest(),
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    target = folder / f"union-{digest}.safetensors"
    facts = target.with_suffix(".json")
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(target.with_suffix(".lock")):
        if not target.exists():
            converted = [
                _converted(source, fingerprint, folder, workers, progress)
                for source, _, fingerprint in prepared
            ]
            rows = [texts for _, texts, _ in prepared]
            found = _build([source for source, _ in sources], converted, rows, target, progress)
            write_json(facts, {"parts": found})
            target.with_suffix(".building").replace(target)
    stored = read_json(facts, "facts of a union")["parts"]
    assert isinstance(stored, list)  # noqa: S101 - as written above
    parts = tuple(
        Part(**{**values, "source": source, "weight": weight})
        for values, (source, weight) in zip(stored, sources, strict=True)
    )
    return Union(GraphCollection.open(target), parts, target)


Texts = Callable[[], Iterator[tuple[int, str]]]  # row numbers and SMILES


def _silent(what: str, done: int, total: int) -> None:
    """Progress that no one watches."""


def _pick(texts: Texts, numbers: NDArray[np.integer]) -> Iterator[str]:
    """The SMILES of the rows with these ascending numbers."""
    wanted = iter(numbers.tolist())
    number = next(wanted, None)
    for row, text in texts():
        if row == number:
            yield text
            number = next(wanted, None)
            if number is None:
                return
    if number is not None:
        raise DataError("a source has changed since it was converted", hint="convert it again")


def _prepare(source: str) -> tuple[str, Texts, str]:
    """The source, its rows, and a hash of its content and of how it is read."""
    reading = None if Path(source).suffix == ".safetensors" else find_reader(source, None, {})
    if reading is None or reading.reader != "smiles":
        raise DataError(
            f"{source} is not a list of SMILES, which a union of sources needs to find duplicates",
            hint="give tables or .smi files of molecules, or moses and zinc250k by name",
        )
    options = {**reading.options, "label_columns": None}
    rows, plan, _ = prepare(reading.source, **options)  # type: ignore[arg-type]

    def texts() -> Iterator[tuple[int, str]]:
        return ((row.number, row.smiles) for row in rows.rows())

    fingerprint = hashlib.sha256(f"{rows.fingerprint()} {asdict(plan)}".encode()).hexdigest()[:16]
    return source, texts, fingerprint


def _converted(
    source: str, fingerprint: str, folder: Path, workers: int | None, progress: Progress
) -> tuple[GraphCollection, int]:
    """The source as a collection whose ids are row numbers, and the number of rejected rows."""
    saved = find_saved(source, None, {})
    if saved is not None:
        collection = GraphCollection.open(saved)
        if isinstance(collection.ids, np.ndarray) and (np.diff(collection.ids) > 0).all():
            return collection, int(collection.ids[-1]) + 1 - len(collection)
    target = folder / f"source-{fingerprint}.safetensors"
    reading = find_reader(source, None, {})
    if not target.exists():
        convert_smiles(
            reading.source, target, workers=workers, number_rows=True,
            progress=lambda done, total: progress(f"converting {source}", done, total),
            **cast(RowOptions, {**reading.options, "label_columns": None}),
        )  # fmt: skip
    collection = GraphCollection.open(target)
    assert isinstance(collection.ids, np.ndarray)  # noqa: S101 - row numbers
    return collection, int(collection.ids[-1]) + 1 - len(collection)


def _build(
    names: Sequence[str],
    converted: Sequence[tuple[GraphCollection, int]],
    texts: Sequence[Texts],
    target: Path,
    progress: Progress,
) -> list[dict[str, object]]:
    """Write the union, not yet under its name, and give what `Part` has of each source."""
    keys, suspects = [], []
    known = test_keys()
    for name, (collection, _) in zip(names, converted, strict=True):
        of_graphs, maybe = _hash_source(name, collection, known, progress)
        keys.append(of_graphs)
        suspects.append(maybe)
    ambiguous = _repeated(np.concatenate(keys))
    seen: set[str] = set()
    facts: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        files: list[Path] = []
        for number, (collection, rejected) in enumerate(converted):
            is_ambiguous = np.isin(keys[number], ambiguous)
            keep, excluded = _select(
                collection, texts[number], is_ambiguous, suspects[number], known, seen,
                partial(progress, f"comparing {names[number]}"),
            )  # fmt: skip
            for start in range(0, len(collection), CHUNK):
                rows = start + np.flatnonzero(keep[start : start + CHUNK])
                if len(rows):
                    files.append(Path(scratch) / f"{len(files):06d}.safetensors")
                    plain = replace(collection.take(rows), labels=None, tasks=(), classes={}, rejected=())
                    replace(plain, ids=rows).save(files[-1])
            facts.append(
                {"molecules": len(collection), "rejected": rejected, "excluded": excluded,
                 "duplicates": len(collection) - excluded - int(keep.sum()), "kept": int(keep.sum())}
            )  # fmt: skip
        if not files:
            raise DataError("no molecule is left to train on", where=", ".join(names))
        title = "+".join(Path(name).name.partition(".")[0].lower() for name in names)
        save_parts([GraphCollection.open(file) for file in files], target.with_suffix(".building"), title, ())
    return facts


def _hash_source(
    name: str, collection: GraphCollection, known: TestKeys, progress: Progress
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Hashes of all graphs, and whether each may be one of a test set."""
    keys = np.empty(len(collection), np.int64)
    suspect = np.empty(len(collection), np.bool_)
    for start in range(0, len(collection), CHUNK):
        stop = min(start + CHUNK, len(collection))
        keys[start:stop], skeletons, irregular = hash_graphs(collection[start:stop])
        suspect[start:stop] = irregular | np.isin(skeletons, known.skeletons)
        progress(f"hashing {name}", stop, len(collection))
    return keys, suspect


def hash_graphs(
    collection: GraphCollection,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Hashes of molecules with and without bond types and charges, and whether the second says nothing.

    The second one is of the skeleton of heavy atoms. It says nothing of a molecule with hydrogens of their
    own, which InChI does not count as atoms, or with metals.
    """
    import torch

    from graphsc.data.environments import environment_keys, hash64

    batch = GraphBatch.of(collection)

    def of_graph(values: torch.Tensor) -> NDArray[np.int64]:
        total = torch.zeros(batch.num_graphs, dtype=torch.int64).index_add(0, batch.batch, hash64(values, 20))
        found: NDArray[np.int64] = hash64(total, 21).numpy()
        return found

    bare = replace(batch, edge_codes=None, edge_columns=())
    regular = torch.zeros(ATOM.cardinality, dtype=torch.bool)
    regular[[(ATOM.values or ()).index(symbol) for symbol in _ORGANIC]] = True
    odd = (~regular[batch.codes[:, 0]]).long()
    irregular = torch.zeros(batch.num_graphs, dtype=torch.int64).index_add(0, batch.batch, odd) > 0
    with_bonds = of_graph(environment_keys(batch, RADIUS)[-1])
    return with_bonds, of_graph(environment_keys(bare, RADIUS, charges=False)[-1]), irregular.numpy()


def _repeated(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values that occur more than once."""
    values, counts = np.unique(keys, return_counts=True)
    return values[counts > 1]


def _select(
    collection: GraphCollection,
    texts: Texts,
    ambiguous: NDArray[np.bool_],
    suspect: NDArray[np.bool_],
    known: TestKeys,
    seen: set[str],
    progress: Callable[[int, int], None],
) -> tuple[NDArray[np.bool_], int]:
    """Which molecules are kept, and how many are of a test set; `seen` gets the canonical SMILES."""
    keep = np.ones(len(collection), np.bool_)
    open_questions = np.flatnonzero(ambiguous | suspect)
    if not len(open_questions):
        return keep, 0
    assert isinstance(collection.ids, np.ndarray)  # noqa: S101 - row numbers
    wanted = iter(zip(collection.ids[open_questions].tolist(), open_questions.tolist(), strict=True))
    row, position = next(wanted)
    excluded = done = 0
    chem = require("rdkit.Chem")
    with require("rdkit.rdBase").BlockLogs():
        for number, text in texts():
            if number != row:
                continue
            molecule = chem.MolFromSmiles(text)
            if suspect[position] and inchi_block(chem, molecule) in known.blocks:
                keep[position] = False
                excluded += 1
            elif ambiguous[position]:
                canonical = chem.MolToSmiles(molecule)
                keep[position] = canonical not in seen
                seen.add(canonical)
            done += 1
            if done % 1000 == 0:
                progress(done, len(open_questions))
            row, position = next(wanted, (-1, -1))
            if row < 0:
                break
    if row >= 0:
        raise DataError("a source has changed since it was converted", hint="convert it again")
    return keep, excluded


def inchi_block(chem: object, molecule: object) -> str:
    """The first block of a molecule's InChIKey; empty where InChI has none for it."""
    key = chem.MolToInchiKey(molecule)  # type: ignore[attr-defined]
    return str(key)[:BLOCK]


@dataclass(frozen=True)
class TestKeys:
    """The molecules of downstream test sets: skeleton hashes, ascending, and first blocks of InChIKeys."""

    __test__ = False  # not a test, whatever its name

    skeletons: NDArray[np.int64]
    blocks: frozenset[str]


@cache
def test_keys() -> TestKeys:
    """Those of the scaffold-split test parts of the eight MoleculeNet sets, which come with the package.

    `graphsc.experiments.test_keys` made the file.
    """
    lines = lzma.decompress(TEST_KEYS.read_bytes()).decode("ascii").split()
    blocks, hashes = lines[0::2], lines[1::2]
    skeletons = np.array([int(text, 16) for text in hashes], dtype=np.uint64).view(np.int64)
    return TestKeys(np.unique(skeletons), frozenset(blocks))


test_keys.__test__ = False  # type: ignore[attr-defined]
