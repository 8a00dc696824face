"""20,000 SMILES to embeddings with the model that ships, against RDKit's fingerprints of the same."""

from __future__ import annotations

from itertools import islice

import numpy as np

from benchmarks.measure import Result, interleave
from graphsc.data.datasets.catalog import NAMED, locate
from graphsc.data.molecules.rows import open_rows
from graphsc.data.readers import open_collection
from graphsc.finetuning.baselines import BITS, ecfp
from graphsc.training.train import embed_with, model_of

MOLECULES = 20_000
MODEL = "graphsc-moses"


def run() -> list[Result]:
    smiles = [row.smiles for row in islice(open_rows(locate(NAMED["moses"])).rows(), MOLECULES)]
    model = model_of(MODEL)
    found: dict[str, np.ndarray] = {}

    def ours() -> None:
        found["ours"] = embed_with(model, open_collection(smiles, reader="smiles", workers=1))

    def floor() -> None:
        found["floor"] = ecfp(smiles)

    result = interleave(
        "embed", f"{MOLECULES:,} of MOSES", ours, floor, bar=3.0, goal=2.0, better="lower",
        against="RDKit ECFP", repeats=5, warm_up=1,
        note=f"{model.dimensions} dimensions against {BITS:,} bits",
    )  # fmt: skip
    # Every molecule has an embedding and a fingerprint.
    assert found["ours"].shape == (MOLECULES, model.dimensions)
    assert np.isfinite(found["ours"]).all()
    assert found["floor"].any(axis=1).all()
    return [result]
