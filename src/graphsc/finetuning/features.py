"""What a molecule is described by beside its graph: fingerprints, RDKit descriptors, likeness to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError
from graphsc.core.registry import require

if TYPE_CHECKING:
    from rdkit.Chem import Mol

Block = Literal["ecfp", "rdkit"]
BLOCKS: tuple[Block, ...] = ("ecfp", "rdkit")
RADIUS, BITS = 2, 2048  # of the fingerprints
MOST_COUNTED = 255  # occurrences of an environment
CLIP = 5.0  # standard deviations, beyond which a standardised descriptor is cut off
SMALL = 5_000  # training molecules up to which `auto` adds both blocks
AUTO = "auto"
# Descriptors that take more time than all others together, and say what those say in other ways.
_SLOW = (
    "qed", "MaxAbsEState", "MinAbsEState", "MaxEState", "MinEState", "BertzCT", "Ipc", "AvgIpc", "SPS",
    "BCUT2D",
)  # fmt: skip
_ROWS = 8_192  # fingerprints that are compared at a time; they stay in the cache


def parse_blocks(text: str, training: int | None = None) -> tuple[Block, ...]:
    """The blocks that a text such as `ecfp,rdkit`, `none` or `auto` names, in their usual order.

    Args:
        text: Names separated by commas.
        training: Training molecules, which `auto` needs: both blocks up to `SMALL` of them, none beyond.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["none"]:
        return ()
    if names == [AUTO]:
        return BLOCKS if training is None or training <= SMALL else ()
    for name in names:
        if name not in BLOCKS:
            raise ConfigError(
                f"molecules are not described by {name!r}",
                hint="use ecfp, rdkit, both with a comma, none or auto",
            )
    if not names:
        raise ConfigError("there is no feature to add", hint="use none to add none")
    return tuple(block for block in BLOCKS if block in names)


def ecfp(smiles: Sequence[str], radius: int = RADIUS, bits: int = BITS) -> NDArray[np.uint8]:
    """Extended-connectivity (Morgan) fingerprints: molecules x bits, zeros for an invalid molecule."""
    return _fingerprints(smiles, radius, bits, counts=False)


def ecfp_counts(smiles: Sequence[str], radius: int = RADIUS, bits: int = BITS) -> NDArray[np.uint8]:
    """The same with the number of times that each environment occurs, 255 at most."""
    return _fingerprints(smiles, radius, bits, counts=True)


def _fingerprints(smiles: Sequence[str], radius: int, bits: int, *, counts: bool) -> NDArray[np.uint8]:
    chem, generators = require("rdkit.Chem"), require("rdkit.Chem.rdFingerprintGenerator")
    generator = generators.GetMorganGenerator(radius=radius, fpSize=bits)
    fingerprints = np.zeros((len(smiles), bits), dtype=np.uint8)
    with require("rdkit.rdBase").BlockLogs():
        for row, text in enumerate(smiles):
            molecule = chem.MolFromSmiles(text)
            if molecule is None:
                continue
            if counts:
                values = generator.GetCountFingerprintAsNumPy(molecule)
                fingerprints[row] = np.minimum(values, MOST_COUNTED)
            else:
                fingerprints[row] = generator.GetFingerprintAsNumPy(molecule)
    return fingerprints


def counts_without_atoms(molecule: Mol, radius: int = RADIUS, bits: int = BITS) -> NDArray[np.uint8]:
    """Count fingerprints (atoms x bits) in which the environments that contain an atom are left out."""
    generators, chem = require("rdkit.Chem.rdFingerprintGenerator"), require("rdkit.Chem")
    generator = generators.GetMorganGenerator(radius=radius, fpSize=bits)
    output = generators.AdditionalOutput()
    output.AllocateBitInfoMap()
    whole = generator.GetCountFingerprint(molecule, additionalOutput=output).ToList()
    counts = np.tile(np.asarray(whole, dtype=np.int64), (molecule.GetNumAtoms(), 1))
    for bit, environments in output.GetBitInfoMap().items():
        for centre, reach in environments:
            inside = {centre}
            if reach:
                for bond in chem.FindAtomEnvironmentOfRadiusN(molecule, reach, centre):
                    inside |= {
                        molecule.GetBondWithIdx(bond).GetBeginAtomIdx(),
                        molecule.GetBondWithIdx(bond).GetEndAtomIdx(),
                    }
            counts[list(inside), bit] -= 1
    return np.clip(counts, 0, MOST_COUNTED).astype(np.uint8)


@cache
def descriptor_names() -> tuple[str, ...]:
    """The names of the descriptors, in the order of their columns: RDKit's without the slow ones."""
    return tuple(name for name, _ in _descriptor_functions())


@cache
def _descriptor_functions() -> tuple[tuple[str, Callable[[Mol], float]], ...]:
    listed = require("rdkit.Chem.Descriptors").descList
    return tuple((name, function) for name, function in listed if not name.startswith(_SLOW))


def descriptors(smiles: Sequence[str]) -> NDArray[np.float32]:
    """RDKit's descriptors: molecules x descriptors, NaN where one cannot be computed or is not finite."""
    chem, functions = require("rdkit.Chem"), _descriptor_functions()
    values = np.full((len(smiles), len(functions)), np.nan, dtype=np.float64)
    with require("rdkit.rdBase").BlockLogs():
        for row, text in enumerate(smiles):
            molecule = chem.MolFromSmiles(text)
            if molecule is None:
                continue
            for column, (_, function) in enumerate(functions):
                try:
                    values[row, column] = function(molecule)
                except (ValueError, RuntimeError, ArithmeticError):
                    continue  # such as partial charges of an element without parameters
    limit = float(np.finfo(np.float32).max)
    usable = np.isfinite(values) & (np.abs(values) < limit)
    return np.where(usable, values, np.nan).astype(np.float32)


@dataclass(frozen=True)
class Scaler:
    """Mean and deviation of the training rows; missing values become the mean, large ones are cut off."""

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]

    @classmethod
    def fit(cls, rows: NDArray[np.floating]) -> Scaler:
        """Of the finite values of each column; a column without two different ones becomes 0 throughout."""
        values = np.asarray(rows, dtype=np.float64)
        known = np.isfinite(values)
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, values, 0.0).sum(axis=0) / count
        square = (np.where(known, values - mean, 0.0) ** 2).sum(axis=0) / count
        deviation = np.sqrt(square)
        # Rounding alone makes a constant column of large numbers vary a little.
        constant = deviation <= 1e-6 * np.maximum(np.abs(mean), 1.0)
        return cls(mean.astype(np.float32), np.where(constant, np.inf, deviation).astype(np.float32))

    def transform(self, rows: NDArray[np.floating]) -> NDArray[np.float32]:
        scaled = (rows - self.mean) / self.deviation
        usable: NDArray[np.float32] = np.clip(np.nan_to_num(scaled, nan=0.0), -CLIP, CLIP).astype(np.float32)
        return usable


@dataclass(frozen=True)
class MoleculeFeatures:
    """Blocks of features, with descriptors standardised on training molecules: one row per molecule.

    Counts c of a fingerprint enter as log(1 + c).
    """

    blocks: tuple[Block, ...]
    scaler: Scaler | None = None  # of the descriptors

    @classmethod
    def fit(cls, blocks: Sequence[Block], raw: RawFeatures, train: NDArray[np.bool_]) -> MoleculeFeatures:
        """Standardise on the molecules that `train` marks."""
        scaler = None
        if "rdkit" in blocks:
            assert raw.descriptors is not None  # noqa: S101 - computed for the same blocks
            scaler = Scaler.fit(raw.descriptors[train])
        return cls(tuple(blocks), scaler)

    @property
    def width(self) -> int:
        return sum(BITS if block == "ecfp" else len(descriptor_names()) for block in self.blocks)

    def rows(self, raw: RawFeatures) -> NDArray[np.float32]:
        """Molecules x width."""
        parts: list[NDArray[np.float32]] = []
        if "ecfp" in self.blocks:
            assert raw.counts is not None  # noqa: S101 - computed for the same blocks
            parts.append(np.log1p(raw.counts, dtype=np.float32))
        if "rdkit" in self.blocks:
            assert raw.descriptors is not None  # noqa: S101 - likewise
            assert self.scaler is not None  # noqa: S101 - likewise
            parts.append(self.scaler.transform(raw.descriptors))
        return np.concatenate(parts, axis=1) if parts else np.zeros((raw.molecules, 0), dtype=np.float32)

    def of(self, smiles: Sequence[str]) -> NDArray[np.float32]:
        """The rows of molecules by their SMILES."""
        return self.rows(RawFeatures.of(smiles, self.blocks))


@dataclass(frozen=True)
class RawFeatures:
    """Fingerprint counts and descriptors as RDKit gives them; None for a block that is not used."""

    molecules: int
    counts: NDArray[np.uint8] | None = None
    descriptors: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, smiles: Sequence[str], blocks: Sequence[Block]) -> RawFeatures:
        return cls(
            len(smiles),
            ecfp_counts(smiles) if "ecfp" in blocks else None,
            descriptors(smiles) if "rdkit" in blocks else None,
        )

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> RawFeatures:
        """The same for some of the molecules."""
        counts = None if self.counts is None else self.counts[rows]
        numbers = None if self.descriptors is None else self.descriptors[rows]
        taken = int(rows.sum()) if rows.dtype == bool else len(rows)
        return RawFeatures(taken, counts, numbers)


def packed(fingerprints: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Fingerprints (molecules x bits) as molecules x bits / 64 words."""
    return np.packbits(fingerprints > 0, axis=1).view(np.uint64)


def nearest_by_tanimoto(
    queries: NDArray[np.uint64], library: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The most similar library molecule of each query, and their Tanimoto similarity.

    Of equally similar ones the first. Two fingerprints without any bit have similarity 0.

    Args:
        queries: Packed fingerprints, molecules x words.
        library: Likewise.
    """
    index = np.full(len(queries), -1, dtype=np.int64)
    best = np.full(len(queries), -1.0)
    sizes = np.bitwise_count(queries).sum(axis=1, dtype=np.int64)
    for start in range(0, len(library), _ROWS):
        part = library[start : start + _ROWS]
        own = np.bitwise_count(part).sum(axis=1, dtype=np.int64)
        for row, query in enumerate(queries):
            shared = np.bitwise_count(part & query).sum(axis=1, dtype=np.int64)
            similarity = shared / np.maximum(own + sizes[row] - shared, 1)
            place = int(similarity.argmax())
            if similarity[place] > best[row]:
                index[row], best[row] = start + place, similarity[place]
    return index, np.maximum(best, 0.0)
