"""What the verbs on labelled molecules share: options, and how results are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphsc.transfer.result import TransferResult

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

    from graphsc.evaluation.tasks import MEASURES

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
