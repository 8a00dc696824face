"""Where models are: by name, by path, or in a run folder. Nothing is loaded here, so torch is not needed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

import graphsc
from graphsc.core.errors import NotFoundError
from graphsc.core.registry import nearest
from graphsc.core.run_folder import RunFolder
from graphsc.data.molecules.sdf import is_sdf
from graphsc.data.readers.csv import read_header, table_suffix

ENDING = ".safetensors"


def model_folders() -> list[Path]:
    """Folders of models by name: those of $GRAPHSC_MODELS (separated like $PATH), then the package's."""
    user = [Path(part) for part in os.environ.get("GRAPHSC_MODELS", "").split(os.pathsep) if part]
    return [*user, Path(graphsc.__file__).parent / "models"]


def available_models() -> dict[str, Path]:
    """Model files by name; if several folders have a name, the first wins."""
    models: dict[str, Path] = {}
    for folder in model_folders():
        for path in sorted(folder.glob(f"*{ENDING}")):
            models.setdefault(path.name.removesuffix(ENDING), path)
    return models


def find_model(source: str | os.PathLike[str]) -> Path:
    """The model file of a run folder, of a model name, or the given file itself.

    Of a fine-tuning run, it is that of the first seed.
    """
    path = Path(source)
    if path.is_dir():
        return next(iter(fine_tuned_files(path)), RunFolder(path).model)
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    models = available_models()
    if path.name not in models:
        raise NotFoundError(
            f"there is no run folder, model file or model called {path.name!r}",
            where=f"models by name are in {', '.join(map(str, model_folders()))}",
            hint=nearest(path.name, models),
        )
    return models[path.name]


# Model files in the folder of a seed of fine-tuning, by selection rule.
FILES = {"last": "last.safetensors", "best": "best.safetensors"}


def fraction_folders(path: Path) -> dict[float, Path]:
    """The runs of a folder of several label fractions, the smallest first; empty for other folders."""
    folders = {}
    for folder in path.glob("labels-*"):
        with suppress(ValueError):
            folders[float(folder.name.removeprefix("labels-"))] = folder
    return dict(sorted(folders.items()))


def model_file(folder: Path, rule: str = "best") -> Path:
    """The model of a seed by this selection rule; without validation labels, that of the last epoch."""
    path = folder / FILES[rule]
    return path if path.exists() else folder / FILES["last"]


def fine_tuned_files(path: Path, rule: str = "best") -> list[Path]:
    """The model files of a fine-tuning run or of one of its seeds, in the order of seeds.

    Of a folder of several label fractions, those of the largest; none for other folders.
    """
    path = next(reversed(fraction_folders(path).values()), path)
    seeds = [folder for folder in path.glob("seed-*") if folder.name.removeprefix("seed-").isdecimal()]
    seeds.sort(key=lambda folder: int(folder.name.removeprefix("seed-")))
    return [file for folder in (path, *seeds) if (file := model_file(folder, rule)).is_file()]


def is_vectors(path: Path) -> bool:
    """Whether a file holds vectors of `graphsc embed`; of a table, by the names of its columns."""
    if path.suffix == ".npz":
        return path.is_file()
    if path.suffix not in (".csv", ".parquet") or not path.is_file():
        return False
    return read_header(path)[:2] == ["id", "v0"]


def trained_reading(model: str | os.PathLike[str], source: str) -> tuple[str, dict[str, object]] | None:
    """Reader and options of a run's own graphs, if `source` is the file or folder they were read from."""
    folder, path = RunFolder(model), Path(source)
    if not folder.config.exists():
        return None
    reading = folder.load_config().get("reading")
    if not isinstance(reading, dict) or reading.get("reader") is None or reading.get("path") is None:
        return None
    if not os.path.exists(source) or path.resolve() != Path(str(reading["path"])).resolve():  # noqa: PTH110
        return None
    return str(reading["reader"]), dict(reading.get("options") or {})


def trained_column(
    model: str | os.PathLike[str], table: Path, role: Literal["smiles_column", "id_column"]
) -> str | None:
    """The column that the table of a fine-tuning run had for SMILES or ids, if this table has it too."""
    folder = next(reversed(fraction_folders(Path(model)).values()), Path(model))
    if not RunFolder(folder).config.exists() or not table.is_file():
        return None
    if not table_suffix(table) and not is_sdf(table):
        return None
    source = RunFolder(folder).load_config().get("source")
    name = source.get(role) if isinstance(source, dict) else None
    return str(name) if name in read_header(table) else None
