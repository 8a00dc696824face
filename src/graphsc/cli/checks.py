"""Names, paths and columns of a command, checked before torch is imported: a slip of the keyboard is answered
at once. Whatever passes here is checked again, in full, by the code that uses it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.errors import ConfigError, GraphscError, NotFoundError
from graphsc.core.registry import Registry, nearest

if TYPE_CHECKING:
    from graphsc.cli.data import ReaderOptions

# Methods that their modules register in a loop; all others are found in the source text.
LOOPED = {
    "graphsc-mse": "graphsc", "graphsc-nb": "graphsc", "graphsc-nm": "graphsc", "graphsc-rd": "graphsc",
    "graphsc-rdt": "graphsc", "graphsc": "graphsc", "joao": "joao", "joaov2": "joao",
}  # fmt: skip
_REGISTERED = re.compile(r'^@?(?:METHODS|ENCODERS)\.register\("([\w-]+)"\)', re.M)
GENERATORS = ("motifs", "molecule-like", "molecule_like")


@cache
def method_modules() -> dict[str, str]:
    """The module of each method of this package, from the source text."""
    return LOOPED | _registered("methods")


@cache
def encoder_modules() -> dict[str, str]:
    """The module of each encoder of this package, from the source text."""
    return _registered("encoders")


@cache
def reader_modules() -> dict[str, str]:
    """The module of each reader of this package, from the source text."""
    for node in _tree("graphsc.data.readers", "__init__").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_OWN":
            modules: dict[str, str] = ast.literal_eval(node.value)
            return modules
    return {}


def _registered(package: str) -> dict[str, str]:
    return {
        name: path.stem
        for path in (_root() / package).glob("*.py")
        for name in _REGISTERED.findall(path.read_text(encoding="utf-8"))
    }


def check_method(*names: str) -> None:
    """Refuse a method that neither this package nor a plug-in has."""
    _check_names("method", names, method_modules())


def check_encoder(name: str) -> None:
    """Refuse an unknown encoder; `package.module:name` is one of the user's own."""
    if ":" not in name:
        _check_names("encoder", (name,), encoder_modules())


def _check_names(kind: str, names: Iterable[str], own: Mapping[str, str]) -> None:
    unknown = [name for name in names if name not in own]
    if not unknown:
        return
    # Entry points of other packages, and what a module that is already imported has registered.
    registered = {*own, *Registry[object](kind)}
    for module, registry in (
        ("graphsc.methods.registry", "METHODS"), ("graphsc.encoders", "ENCODERS"),
        ("graphsc.data.readers", "READERS"),
    ):  # fmt: skip
        if kind.upper() + "S" == registry and module in sys.modules:
            registered |= set(getattr(sys.modules[module], registry))
    for name in unknown:
        if name not in registered:
            raise ConfigError(f"unknown {kind} {name!r}", hint=nearest(name, registered))


def check_settings(methods: Sequence[str], encoder: str, assignments: Sequence[str] | None) -> None:
    """Refuse a key of `--set` that none of the methods, nor the encoder, nor the loop has."""
    if not assignments or not method_modules().keys() >= set(methods) or encoder not in encoder_modules():
        return
    from graphsc.core.config import parse_assignments
    from graphsc.core.run_folder import RENAMED_SETTINGS

    known = {name for method in methods for name in keywords("graphsc.methods", method_modules()[method])}
    known |= {f"encoder.{name}" for name in keywords("graphsc.encoders", encoder_modules()[encoder])}
    loop = _fields("graphsc.training", "trainer", "TrainSettings")
    known |= {*RENAMED_SETTINGS, *loop, *(f"training.{name}" for name in loop)}
    for key in parse_assignments(list(assignments)):
        if key not in known:
            names = " and ".join(repr(method) for method in methods)
            raise ConfigError(f"method {names} has no setting {key!r}", hint=nearest(key, known))


def check_reader(reading: ReaderOptions) -> None:
    """Refuse an unknown reader, and options that it does not have."""
    options = reading.options() if reading.reader_set else {}
    if reading.reader is None:
        return
    _check_names("reader", (reading.reader,), reader_modules())
    module = reader_modules().get(reading.reader)
    if not options or module is None:
        return
    known = {
        argument.arg
        for node in _tree("graphsc.data.readers", module).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("read_")
        for argument in node.args.kwonlyargs
    }
    for name in options:
        if name not in known:
            raise ConfigError(f"reader {reading.reader!r} has no setting {name!r}", hint=nearest(name, known))


def keywords(package: str, module: str) -> set[str]:
    """Keywords of the constructors of a module's classes and of their bases, from the source text."""
    tree = _tree(package, module)
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                    found.update(argument.arg for argument in item.args.kwonlyargs)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            # A base class, or a function that takes some of the keywords.
            base = (node.module or "").removeprefix(f"{package}.")
            if base != module and any(name.name[:1].isupper() for name in node.names):
                found |= keywords(package, base)
    return found


def _fields(package: str, module: str, name: str) -> list[str]:
    """Fields of a dataclass, from the source text."""
    (node,) = (n for n in _tree(package, module).body if isinstance(n, ast.ClassDef) and n.name == name)
    return [item.target.id for item in node.body if isinstance(item, ast.AnnAssign)]  # type: ignore[union-attr]


def _tree(package: str, module: str) -> ast.Module:
    """The source of a module, without importing it or its package."""
    path = _root().joinpath(*package.split(".")[1:], f"{module}.py")
    return ast.parse(path.read_text(encoding="utf-8"))


def _root() -> Path:
    return Path(__file__).parents[1]


def check_source(
    source: str, reading: ReaderOptions, features: str | None = None, *, by_header: bool = False
) -> None:
    """Refuse a source that does not exist, columns that its table does not have, unknown feature blocks.

    With `by_header`, also a table that no reader accepts; the data of a run has the run's reader.
    """
    from graphsc.data.datasets.catalog import NAMED

    check_reader(reading)
    if features is not None:
        from graphsc.data.features import BLOCKS

        for part in features.split("+"):
            block = part.strip().partition(":")[0]
            if block not in (*BLOCKS, "auto"):
                raise ConfigError(
                    f"unknown feature block {block!r}", hint=f"join any of {', '.join(BLOCKS)} by '+'"
                )
    if reading.reader is None and not _exists(source) and source.lower() not in NAMED:
        if source.partition(":")[0] in GENERATORS or any(letter in source for letter in "*?["):
            return
        from graphsc.data.readers import has_plugin_readers, not_found

        if not has_plugin_readers():  # which may know it
            raise not_found(source)
    if by_header and reading.reader is None and reading.smiles_column is None and _exists(source):
        _check_header(Path(source))
    if reading.reader in (None, "smiles") and _exists(source):
        columns = {
            name: value
            for name, value in reading.options().items()
            if name in ("smiles_column", "id_column", "label_columns", "separator", "decimal")
        }
        # Edges have separators and decimal points, too.
        if not columns.keys() <= {"separator", "decimal"} or _holds_molecules(Path(source)):
            check_columns(source, columns)
    if reading.reader == "edges" and reading.reader_set and _exists(source):
        _check_edge_columns(Path(source), reading.options())


def _holds_molecules(path: Path) -> bool:
    from graphsc.data.readers.smiles import accepts_smiles

    return accepts_smiles(path)


def _check_edge_columns(path: Path, options: Mapping[str, object]) -> None:
    """Refuse columns that a table of edges does not have."""
    from graphsc.data.readers.csv import find_column, read_header, table_suffix

    separator = options.get("separator")
    header = read_header(path, None if separator is None else str(separator)) if table_suffix(path) else []
    for role in ("graph", "source", "target"):
        column = options.get(f"{role}_column")
        if header and column is not None:
            find_column(header, role, str(column), (), path)


def _check_header(path: Path) -> None:
    """Refuse a table whose columns are neither those of molecules nor those of edges."""
    from graphsc.data.readers.csv import table_suffix

    if table_suffix(path):
        from graphsc.data.readers import has_plugin_readers, not_found
        from graphsc.data.readers.edge_list import accepts_edges
        from graphsc.data.readers.smiles import accepts_smiles

        if not (accepts_edges(path) or accepts_smiles(path) or has_plugin_readers()):
            raise not_found(str(path))


def check_table(
    source: str,
    labels: str | None,
    smiles_column: str | None,
    id_column: str | None = None,
    *,
    separator: str | None = None,
    decimal: str | None = None,
) -> None:
    """Refuse a table of molecules that does not exist, whose columns are others, or whose numbers are."""
    from graphsc.cli.data import ReaderOptions

    check_source(source, ReaderOptions(smiles_column=smiles_column, id_column=id_column))
    if labels is not None and labels.strip() != "*":
        names = [name.strip() for name in labels.split(",") if name.strip()]
        given = {
            "smiles_column": smiles_column, "id_column": id_column, "separator": separator,
            "decimal": decimal,
        }  # fmt: skip
        columns = {name: value for name, value in given.items() if value is not None}
        check_columns(source, {**columns, "label_columns": names})


def check_columns(source: str, columns: Mapping[str, object]) -> None:
    """Refuse columns that a table of molecules does not have."""
    path = Path(source)
    if not columns or not path.is_file():
        return
    from graphsc.data.readers.csv import table_suffix

    if table_suffix(path):
        from graphsc.data.molecules.rows import open_rows

        open_rows(path, **columns)  # type: ignore[arg-type]


def check_model(source: str | Path) -> None:
    """Refuse a model or run that does not exist."""
    from graphsc.training.model_files import find_model

    path = find_model(source)
    if not path.exists() and not Path(source).is_dir():
        raise NotFoundError("there is no run folder, model file or model", where=str(source))


def check_typed_ids(text: str, source: Path, data: str | None, reading: ReaderOptions) -> None:
    """Refuse an id of `--to` that no graph has, where ids can be read without reading graphs."""
    known = _known_ids(source, data, reading)
    if known is not None:
        from graphsc.core.ids import check_ids, split_ids

        check_ids(split_ids(text, set(known)), known)


def _known_ids(source: Path, data: str | None, reading: ReaderOptions) -> list[str] | None:
    """The ids of a file of vectors, of molecules, or of the molecules of a run; None of other graphs."""
    from graphsc.training.embedding_files import ENDINGS, read_embedding_ids

    if source.suffix in ENDINGS:
        return read_embedding_ids(source)
    if data is not None:
        return _molecule_ids(data, reading.reader, reading.options())
    if not source.is_dir() or not (source / "config.yaml").is_file():
        return None
    from graphsc.core.run_folder import RunFolder

    config = RunFolder(source).load_config()
    stored = config.get("reading")
    if isinstance(stored, Mapping):
        if stored.get("reader") == "tu":  # its graphs have no other names
            graphs = config["data"]["graphs"]  # type: ignore[index]
            return [str(number) for number in range(graphs)]
        if stored.get("reader") == "edges":
            return _edge_list_ids(stored.get("path"), stored.get("options"))
        return _molecule_ids(stored.get("path"), stored.get("reader"), stored.get("options"))
    stored = config.get("source")
    if isinstance(stored, Mapping):  # of fine-tuning
        return _molecule_ids(stored.get("data"), "smiles", stored)
    return None


def _molecule_ids(source: object, reader: object, options: object) -> list[str] | None:
    if not isinstance(source, str) or not Path(source).is_file() or reader not in (None, "smiles"):
        return None
    from graphsc.data.molecules.rows import molecule_ids
    from graphsc.data.readers.edge_list import accepts_edges
    from graphsc.data.readers.smiles import accepts_smiles

    given = dict(options) if isinstance(options, Mapping) else {}
    named = reader == "smiles" or given.get("smiles_column") is not None
    if not named and (accepts_edges(source) or not accepts_smiles(source)):
        return None
    known = ("smiles_column", "id_column", "separator")
    return molecule_ids(source, **{key: given[key] for key in known if given.get(key) is not None})


def _edge_list_ids(source: object, options: object) -> list[str] | None:
    """The graphs that a table of edges names; None where other tables name graphs, too."""
    given = dict(options) if isinstance(options, Mapping) else {}
    if not isinstance(source, str) or not Path(source).is_file():
        return None
    if given.get("nodes") is not None or given.get("allow_empty"):
        return None
    import csv

    from graphsc.data.readers.csv import find_column, open_text, read_header, separator_of, table_suffix
    from graphsc.data.readers.edge_list import SYNONYMS

    path, separator = Path(source), given.get("separator")
    if table_suffix(path) not in (".csv", ".tsv"):
        return None
    delimiter = separator_of(path, separator)
    header = read_header(path, separator)
    try:
        at = header.index(find_column(header, "graph", given.get("graph_column"), SYNONYMS["graph"], path))
    except GraphscError:
        return None  # one graph, or a table that is refused later
    with open_text(path, errors="replace") as file:
        rows = csv.reader(file, delimiter=delimiter)
        next(rows, None)
        return list(dict.fromkeys(row[at].strip() for row in rows if len(row) > at))


def check_run(path: Path) -> None:
    """Refuse a folder that holds no run."""
    from graphsc.core.run_folder import RunFolder

    RunFolder(path).check_exists()


def check_file(path: Path, what: str) -> None:
    """Refuse a file that does not exist."""
    if not path.exists():
        raise NotFoundError(f"there is no {what}", where=str(path), hint="check the path")


def check_ending(path: Path | None, endings: Sequence[str], what: str) -> None:
    """Refuse the name of an output file whose format is unknown."""
    if path is not None and path.suffix not in endings:
        raise ConfigError(
            f"cannot write {what} to a {path.suffix or 'nameless'} file", where=str(path),
            hint=f"end the name in {', '.join(endings[:-1])} or {endings[-1]}",
        )  # fmt: skip


def check_page(out: Path) -> None:
    """Refuse the name of a page that would hide what it is, such as `--out table.csv`."""
    check_ending(out, (".html", ".htm"), "a page")


def _exists(source: str) -> bool:
    try:
        return Path(source).exists()
    except OSError:  # a name that is too long
        return False
