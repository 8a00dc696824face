"""Tables 1 and 2: how many graphs, nodes and edges, as we read them and as the paper prints them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.files import write_atomic
from graphsc.core.formats import check_stamp, stamp
from graphsc.data.describe import describe
from graphsc.data.names import NAMED
from graphsc.data.sources import open_collection
from graphsc.experiments.reproduce.expand import is_here
from graphsc.experiments.reproduce.recipe import Recipe
from graphsc.experiments.reproduce.sheet import Entry, Sheet

FOLDER = "statistics"  # beside the results; not named as a data set
HEADS = (
    "data", "category", "graphs", "nodes", "edges", "printed graphs", "printed nodes", "printed edges",
)  # fmt: skip
Measured = tuple[int, float, float]  # graphs, nodes a graph, edges a graph


def title_of(name: str) -> str:
    """What tables call a data set."""
    return NAMED[name.lower()].title if name.lower() in NAMED else name


def measure(names: Sequence[str], results: Path, say: Callable[[str], None] = lambda _: None) -> None:
    """Read the sets that are on this machine and not measured yet, and keep what they hold."""
    for name in names:
        path = _path(results, name)
        if path.exists() or name.lower() not in NAMED or not is_here(name):
            continue
        found = describe(open_collection(name))
        kept = {
            **stamp("statistics"), "name": found.name, "graphs": found.graphs, "nodes_mean": found.nodes_mean,
            "edges_mean": found.edges_mean, "undirected": found.undirected, "self_loops": found.self_loops,
            "content_hash": found.content_hash,
        }  # fmt: skip
        write_atomic(path, json.dumps(kept, indent=1) + "\n")
        say(f"{found.name}: {found.graphs:,} graphs measured")


def statistics_sheet(recipe: Recipe, names: Sequence[str], results: Path) -> Sheet:
    """Measured above printed, a row a data set; empty where the set is not at hand."""
    rows, records = [], []
    for name in names:
        title = title_of(name)
        category, *printed = _printed(recipe, title if title in recipe.printed else title.upper())
        measured = _measured(results, name, directed=recipe.directed)
        ours = ["", "", ""] if measured is None else [f"{measured[0]:,}", *(f"{v:.2f}" for v in measured[1:])]
        theirs = [_number(value) for value in printed]
        entries = [Entry(text, under) for text, under in zip(ours, theirs, strict=True)]
        rows.append((title.upper() if name.lower() not in NAMED else title, (Entry(str(category)), *entries)))
        exact = ("", "", "") if measured is None else (measured[0], *(round(v, 4) for v in measured[1:]))
        records.append((title, category, *exact, *printed))
    edges = "directed edges a graph" if recipe.directed else "edges a graph"
    absent = [row for (row, _), name in zip(rows, names, strict=True) if _measured(results, name) is None]
    left = f"Not measured yet, or not on this machine: {', '.join(absent)}." if absent else ""
    return Sheet(
        title=recipe.title,
        heads=("data", "category", "graphs", "nodes a graph", edges),
        rows=tuple(rows),
        notes=tuple(note for note in (left, *recipe.notes, "Printed numbers stand under ours.") if note),
        beside="printed",
        record_heads=HEADS,
        records=tuple(records),
    )


def _printed(recipe: Recipe, title: str) -> list[object]:
    found = recipe.printed.get(title, ["", "", "", ""])
    return list(found) if isinstance(found, list) and len(found) == 4 else ["", "", "", ""]


def _number(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _path(results: Path, name: str) -> Path:
    return results / FOLDER / "sets" / f"{title_of(name)}.json"


def _measured(results: Path, name: str, *, directed: bool = False) -> Measured | None:
    """What is stored of a set; both directions of an edge count where the table has it so."""
    path = _path(results, name)
    try:
        found = json.loads(path.read_bytes())
        check_stamp(
            "statistics", {key: str(found.get(key, "")) for key in ("format", "format_version")}, str(path)
        )
        loops = found["self_loops"] / found["graphs"]
        edges = found["edges_mean"]
        if directed and found["undirected"]:
            edges = 2 * (edges - loops) + loops
        return int(found["graphs"]), float(found["nodes_mean"]), float(edges)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotFoundError(f"cannot read statistics: {error.strerror}", where=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise DamagedFileError("statistics file is damaged", where=str(path)) from error
