"""`graphsc demo`: what the package does, on real graphs, in a few seconds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from graphsc.data.collection import GraphCollection


def demo(
    *,
    out: Annotated[Path, Parameter(help="Folder for the pictures.")] = Path("demo"),
    seed: Annotated[int, Parameter(help="Seed of the untrained encoder.")] = 0,
) -> None:
    """Load MUTAG, show its statistics, draw a few graphs and a map of untrained embeddings."""
    from graphsc.cli.output import print_facts

    collection, pictures = run_demo(out, seed)
    print_facts(f"{collection.name}: statistics", collection.describe().facts())
    for what, path in pictures.items():
        sys.stdout.write(f"{what}: {path}\n")


def run_demo(out: Path, seed: int = 0) -> tuple[GraphCollection, dict[str, Path]]:
    """Make the demo's pictures; returns the collection shown and the picture files by title."""
    import torch

    from graphsc.core.errors import NotFoundError
    from graphsc.core.random import derive_seed
    from graphsc.data.sources import open_collection
    from graphsc.encoders import Gin
    from graphsc.encoders.embedding import embed, reestimate_batchnorm
    from graphsc.report.draw import draw_graphs
    from graphsc.report.map import draw_map, flatten

    try:
        collection = open_collection("mutag")
    except NotFoundError:
        collection = open_collection("motifs")  # where the kernels extra, which carries MUTAG, is missing
    drawing, chart = out / "graphs.png", out / "map.png"
    draw_graphs(collection, range(0, len(collection), max(1, len(collection) // 8))[:8], drawing)
    torch.manual_seed(derive_seed(seed, "initialisation"))
    encoder = Gin(collection.features)
    reestimate_batchnorm(encoder, collection)
    embeddings = embed(encoder, collection)
    assert collection.labels is not None  # noqa: S101 - both collections above have labels
    groups = [f"class {label:g}" for label in collection.labels[:, 0]]
    title = f"{collection.name}: {len(collection)} graphs, untrained GIN, {embeddings.shape[1]} dimensions"
    draw_map(flatten(embeddings, seed), groups, title, chart)
    return collection, {"graphs": drawing, "map of untrained embeddings": chart}
