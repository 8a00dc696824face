"""The held-out molecules of a fine-tuning run that are worth a look, drawn: doubtful ones, and errors."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError
from graphsc.finetuning.result import TransferResult, column_names
from graphsc.report.html import ReportCard, ReportGallery

MOST = 12

Rows = Sequence[Mapping[str, str]]


def molecule_galleries(path: Path, result: TransferResult) -> list[ReportGallery]:
    """The molecules on which seeds disagree most, and those predicted worst; none without predictions."""
    if not path.exists():
        return []
    names = column_names(result.tasks, result.kind, result.tasks)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        predicted = _numbers(rows, [pair[0] for pair in names])
        spread = _numbers(rows, [pair[1] for pair in names])
        labels = _numbers(rows, result.tasks)
        test = np.array([row["part"] == "test" for row in rows], dtype=bool)
        smiles = [row["smiles"] for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedFileError("not a table of predictions", where=str(path)) from error
    if not rows:
        return []
    found = []
    if spread.any():  # one seed agrees with itself
        caption = (
            "Held-out molecules by the spread over seeds: what the model knows least about, and worth a test."
        )
        places = _largest(spread)
        cards = [_card(smiles[i], result, k, predicted[i, k], labels[i, k], spread[i, k]) for i, k in places]
        found.append(ReportGallery("Most uncertain molecules", cards, caption))
    errors = np.where(test[:, None], np.abs(predicted - labels), np.nan)
    if result.kind == "regression":  # tasks have units of their own
        deviation = np.nanstd(np.where(np.isnan(labels).all(axis=0), 0.0, labels), axis=0)
        errors = errors / np.where(deviation > 0, deviation, 1.0)
    places = _largest(errors)
    if places:
        cards = [_card(smiles[i], result, k, predicted[i, k], labels[i, k], None) for i, k in places]
        caption = "Test molecules farthest from their label: an error of the model, or of the label."
        found.append(ReportGallery("Largest errors", cards, caption))
    return found


def _numbers(rows: Rows, names: Sequence[str]) -> NDArray[np.float64]:
    """Rows x names; what is empty is NaN."""
    found = [[np.nan if row[name] == "" else float(row[name]) for name in names] for row in rows]
    return np.array(found, dtype=np.float64).reshape(len(rows), len(names))


def _largest(values: NDArray[np.float64]) -> list[tuple[int, int]]:
    """The first (molecule, task) by each molecule's largest value; molecules without any are left out."""
    known = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-known.max(axis=1, initial=-np.inf), kind="stable")
    return [(int(i), int(known[i].argmax())) for i in order[:MOST] if np.isfinite(known[i]).any()]


def _card(
    smiles: str, result: TransferResult, task: int, predicted: float, label: float, spread: float | None
) -> ReportCard:
    name = "probability" if result.kind == "classification" else "predicted"
    facts = {"task": result.tasks[task]} if len(result.tasks) > 1 else {}
    digits = ".2f" if result.kind == "classification" else ".3g"
    facts[name] = f"{predicted:{digits}}" + ("" if spread is None else f" ± {spread:{digits}}")
    facts["label"] = "unknown" if np.isnan(label) else f"{label:g}"
    return ReportCard(smiles, facts, _picture(smiles))


def _picture(smiles: str) -> str:
    """The structure as SVG; nothing where it is too large for a card or no chemistry is installed."""
    if importlib.util.find_spec("rdkit") is None:
        return ""
    from graphsc.report.drawings import MAX_NODES
    from graphsc.report.molecules import draw_smiles, formula_svg

    drawing = draw_smiles(smiles)
    return "" if drawing is None or len(drawing.positions) > MAX_NODES else formula_svg(drawing)
