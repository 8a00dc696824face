"""SMILES to a collection file with two processes, against RDKit's parser alone in two processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

from joblib.externals.loky import get_reusable_executor

from benchmarks.measure import Result, interleave
from graphsc.data.datasets.catalog import NAMED, locate
from graphsc.data.molecules.conversion import convert_smiles
from graphsc.data.molecules.rows import open_rows

MOLECULES = 50_000
WORKERS = 2
# Every second molecule; both sides start their processes and import RDKit on the clock.
FLOOR = """
import sys
from itertools import islice
from rdkit.Chem import MolFromSmiles
with open(sys.argv[1]) as file:
    for line in islice(file, int(sys.argv[2]), None, int(sys.argv[3])):
        MolFromSmiles(line.strip())
"""


def _convert(source: Path, target: Path) -> None:
    convert_smiles(source, target, workers=WORKERS)
    get_reusable_executor().shutdown(wait=True)  # so that the next repetition starts its processes, too


def _floor(source: Path) -> None:
    arguments = [sys.executable, "-c", FLOOR, str(source)]
    children = [subprocess.Popen([*arguments, str(k), str(WORKERS)]) for k in range(WORKERS)]
    for child in children:
        assert child.wait() == 0


def run() -> list[Result]:
    path = locate(NAMED["moses"])
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "molecules.smi"
        source.write_text("".join(f"{row.smiles}\n" for row in islice(open_rows(path).rows(), MOLECULES)))
        target = Path(folder) / "molecules.safetensors"
        return [
            interleave(
                "molecules", f"{MOLECULES:,} of MOSES, {WORKERS} processes", lambda: _convert(source, target),
                lambda: _floor(source), bar=1.6, better="lower", against="RDKit MolFromSmiles", repeats=5,
                warm_up=0,
            )
        ]  # fmt: skip
