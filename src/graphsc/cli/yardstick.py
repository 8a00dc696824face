"""`graphsc yardstick`: what fine-tuning must beat."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from graphsc.cli.data import JsonOption, SmilesOption
from graphsc.cli.output import counting_bar, print_json, print_table
from graphsc.cli.transfer import (
    HEADS,
    FractionOption,
    KindOption,
    LabelsOption,
    SplitOption,
    SplitSeedOption,
    TableArgument,
    columns_of,
    numbers_of,
    result_rows,
)


def yardstick(
    source: TableArgument,
    weights: Annotated[
        str | None,
        Parameter(help="Also a linear probe on the frozen vectors of these weights; none: untrained."),
    ] = None,
    /,
    *,
    labels: LabelsOption = None,
    smiles_column: SmilesOption = None,
    kind: KindOption = "auto",
    split: SplitOption = "scaffold",
    split_seed: SplitSeedOption = 0,
    seeds: Annotated[int, Parameter(help="Random forests to average over.")] = 1,
    label_fraction: FractionOption = "1",
    json: JsonOption = False,
) -> None:
    """What fine-tuning must beat: ECFP fingerprints with a random forest and with a linear model.

    On the same split and by the same measures as graphsc finetune.
    """
    from graphsc.transfer.fingerprints import ecfp
    from graphsc.transfer.labelled import read_labelled
    from graphsc.transfer.split import split_molecules
    from graphsc.transfer.yardstick import yardstick as run

    molecules = read_labelled(source, labels=columns_of(labels), smiles_column=smiles_column, kind=kind)
    parts = split_molecules(molecules.smiles, split, split_seed)
    prints = ecfp(molecules.smiles)
    found = []
    rows = []
    for fraction in numbers_of(label_fraction, "--label-fraction"):
        for way in ("ecfp-forest", "ecfp-linear", *(("frozen",) if weights is not None else ())):
            # Chance has a part in a forest and in first weights only.
            times = seeds if way == "ecfp-forest" or (way == "frozen" and weights == "none") else 1
            results = []
            for seed in range(times):
                with counting_bar(f"{way}, seed {seed}", "tasks") as progress:
                    results.append(
                        run(
                            molecules, way, weights or "none", seed=seed, split=split, split_seed=split_seed,
                            parts=parts, label_fraction=fraction,
                            rows=prints if way != "frozen" else None, progress=progress,
                        )
                    )  # fmt: skip
            found += results
            rows += [(way, f"{fraction:g}", *row[1:]) for row in result_rows(results)]
    if json:
        print_json([{**one.trial, "words": one.words, **one.figures("fit")} for one in found])
        return
    print_table(f"Yardsticks on {molecules.name}", ("way", "labels", *HEADS[1:]), rows)
