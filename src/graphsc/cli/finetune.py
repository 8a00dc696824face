"""`graphsc finetune` and `graphsc predict`: from labels to a model, from a model to predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from graphsc.cli.data import JsonOption, SmilesOption
from graphsc.cli.output import counting_bar, print_facts, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphsc.finetuning.result import TransferResult


# What the verbs on labelled molecules share: options, and how results are told.


TableArgument = Annotated[str, Parameter(help="A CSV with a column of SMILES, or a name such as bbbp.")]
LabelsOption = Annotated[
    str | None,
    Parameter(help="Columns to predict, with commas; * for all. Not needed where there is only one."),
]
KindOption = Annotated[
    Literal["auto", "classification", "regression"], Parameter(help="What labels are, if not guessed.")
]
SplitOption = Annotated[
    Literal["scaffold", "random-scaffold", "random"],
    Parameter(help="How molecules are held out: whole scaffolds, or at random."),
]
SplitSeedOption = Annotated[int, Parameter(help="Draws the split, where chance has a part in it.")]
FractionOption = Annotated[
    str, Parameter(help="Share of the training labels to learn from; several with commas make a curve.")
]


HEADS = ("rule", "measure", "test", "over seeds", "seeds", "tasks", "without a score")


def result_rows(results: Sequence[TransferResult]) -> list[tuple[object, ...]]:
    """A line for each rule and measure: mean and deviation over seeds."""
    import numpy as np

    from graphsc.evaluation.metrics import MEASURES

    first = results[0]
    rows: list[tuple[object, ...]] = []
    for rule in first.rules:
        for name in MEASURES[first.kind]:
            values = np.array([one.score(rule, "test", name) for one in results])
            skipped = first.figures(rule)["skipped"]
            assert isinstance(skipped, list)  # noqa: S101 - narrows the type
            scale, digits = (100, 2) if first.kind == "classification" else (1, 4)
            mean = float(values.mean()) * scale
            rows.append(
                (
                    rule, name.replace("_", " "),
                    "-" if np.isnan(mean) else f"{mean:.{digits}f}",
                    f"{float(values.std()) * scale:.{digits}f}" if len(results) > 1 else "-",
                    len(results), len(first.tasks) - len(skipped), ", ".join(skipped) or "-",
                )
            )  # fmt: skip
    return rows


def columns_of(text: str | None) -> str | list[str] | None:
    if text is None or text.strip() == "*":
        return text
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers_of(text: str, option: str) -> list[float]:
    from graphsc.core.errors import ConfigError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"{option} takes numbers with commas between them, not {text!r}") from error


def finetune(
    weights: Annotated[
        str, Parameter(help="A run's folder or model file with a trained encoder, or the word none.")
    ],
    source: TableArgument,
    /,
    *,
    labels: LabelsOption = None,
    smiles_column: SmilesOption = None,
    kind: KindOption = "auto",
    split: SplitOption = "scaffold",
    split_seed: SplitSeedOption = 0,
    seeds: Annotated[int, Parameter(help="Whole repetitions; predictions are averaged over them.")] = 3,
    epochs: Annotated[int, Parameter(help="How often to see every molecule.")] = 100,
    lr: Annotated[
        str, Parameter(help="Learning rate; of several, with commas, validation chooses.")
    ] = "1e-3",
    grid: Annotated[
        bool,
        Parameter(negative=(), help="The GraphSC paper's grid: three learning rates, every 20th epoch."),
    ] = False,
    batch_size: Annotated[int, Parameter(help="Molecules a step.")] = 32,
    dropout: Annotated[float, Parameter(help="In the encoder, while tuning.")] = 0.5,
    weight_decay: Annotated[float, Parameter(help="Of Adam.")] = 0.0,
    precision: Annotated[
        Literal["full", "bf16"], Parameter(help="bf16: products in 16 bits, faster where a device has them.")
    ] = "full",
    patience: Annotated[
        int | None, Parameter(help="Stop when validation has found nothing better for so many epochs.")
    ] = None,
    label_fraction: FractionOption = "1",
    set_: Annotated[
        list[str] | None,
        Parameter(name="--set", negative=(), help="encoder.KEY=VALUE, with weights none; repeatable."),
    ] = None,
    device: Annotated[str, Parameter(help="auto, cpu, cuda or mps.")] = "auto",
    out: Annotated[Path | None, Parameter(help="The run's folder; by default runs/DATA-finetuned.")] = None,
    json: JsonOption = False,
) -> None:
    """Fine-tune a trained encoder on labelled molecules; run the same command again to go on after a stop.

    Judges by both rules of the literature: the last epoch, and the one validation likes best.
    """
    from graphsc.core.config import parse_assignments
    from graphsc.core.errors import ConfigError
    from graphsc.finetuning.dataset import read_dataset
    from graphsc.finetuning.finetune import GRID_EVERY, GRID_RATES, FineTuneSettings
    from graphsc.finetuning.finetune import finetune as run
    from graphsc.training.callbacks import reporter_for_terminal

    if seeds < 1:
        raise ConfigError(f"seeds is {seeds}", hint="use 1 or more")
    settings = FineTuneSettings(
        epochs=epochs,
        learning_rates=GRID_RATES if grid else tuple(numbers_of(lr, "--lr")),
        batch_size=batch_size,
        dropout=dropout,
        weight_decay=weight_decay,
        patience=patience,
        every=GRID_EVERY if grid else 1,
        precision=precision,
    )
    given = parse_assignments(set_ or [])
    for key in given:
        if not key.startswith("encoder."):
            raise ConfigError(f"{key!r} is not a setting of the encoder", hint="write encoder.KEY=VALUE")
    molecules = read_dataset(source, labels=columns_of(labels), smiles_column=smiles_column, kind=kind)
    folder = out or Path("runs") / f"{molecules.name}-finetuned"
    reporter = reporter_for_terminal()
    fractions = numbers_of(label_fraction, "--label-fraction")
    found = {}
    for fraction in fractions:
        found[fraction] = run(
            molecules, weights,
            out=folder if len(fractions) == 1 else folder / f"labels-{fraction:g}",
            settings=settings, seeds=range(seeds), split=split, split_seed=split_seed,
            label_fraction=fraction,
            encoder_settings={key.removeprefix("encoder."): value for key, value in given.items()},
            device=device, source=source, reporter=reporter,
        )  # fmt: skip
    rows = [(f"{fraction:g}", *row) for fraction, one in found.items() for row in result_rows(one.results)]
    first = next(iter(found.values()))
    if json:
        print_json(
            {
                "run": str(folder),
                "kind": molecules.kind,
                "balance": [one.to_json() for one in first.balance],
                "results": {
                    f"{fraction:g}": [
                        {rule: result.figures(rule) for rule in result.rules} for result in one.results
                    ]
                    for fraction, one in found.items()
                },
            }
        )
        return
    if len(molecules.tasks) <= 12:
        print_table(
            "Labels",
            ("task", "part", *(("values",) if molecules.kind == "regression" else ("positives", "negatives")),
             "missing"),
            [
                (one.task, one.part,
                 *((one.values,) if one.values is not None else (one.positives, one.negatives)), one.missing)
                for one in first.balance
            ],
        )  # fmt: skip
    print_table(first.results[0].words, ("labels", *HEADS), rows)
    print_facts(molecules.name, [("run", folder)])


def predict(
    model: Annotated[Path, Parameter(help="The folder that graphsc finetune wrote, or a model file in it.")],
    source: Annotated[str, Parameter(help="A CSV with a column of SMILES, or a .smi file.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="FILE.csv or FILE.parquet.")],
    smiles_column: SmilesOption = None,
    rule: Annotated[
        Literal["best", "last"], Parameter(help="Models of the best epoch on validation, or of the last.")
    ] = "best",
    json: JsonOption = False,
) -> None:
    """Predict every row of a table, in its order and with its columns; go on after a stop.

    Probabilities (or numbers) are averaged over the run's seeds, with their spread as a measure of doubt.
    Rows without a molecule stay, with the reason.
    """
    from graphsc.finetuning.predict import predict_table

    with counting_bar(str(source), "rows") as progress:
        done = predict_table(model, source, out, smiles_column=smiles_column, rule=rule, progress=progress)
    facts = {
        "rows": done.rows, "without a molecule": done.rejected, "models": done.models,
        "written to": str(done.path),
    }  # fmt: skip
    if json:
        print_json(facts)
    else:
        print_facts(", ".join(done.tasks[:5]), list(facts.items()))


# `graphsc yardstick`: what fine-tuning must beat.


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
    from graphsc.finetuning.baselines import baseline as run
    from graphsc.finetuning.baselines import ecfp
    from graphsc.finetuning.dataset import read_dataset
    from graphsc.finetuning.splits import split_molecules

    molecules = read_dataset(source, labels=columns_of(labels), smiles_column=smiles_column, kind=kind)
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
