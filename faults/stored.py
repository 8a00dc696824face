"""The kinds of files that we write and read again: one line per kind in `STORED`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

from faults.bits import Stored
from faults.figures import ROOT
from faults.run_targets import METHOD, SMALL, train_small
from faults.target import SEEDS
from faults.transfer_targets import tune_small


def of_run(name: str) -> Callable[[Path], Path]:
    """A file of a small run; the newest where the name is a pattern."""
    return lambda home: max(train_small(home).glob(name))


def of_tuning(name: str) -> Callable[[Path], Path]:
    """A file of a small fine-tuning."""
    return lambda home: tune_small(home).parent / name


@cache
def graphs() -> object:
    from graphsc.data.readers import open_collection

    return open_collection("motifs:8")


def seed_collection(home: Path) -> Path:
    from graphsc.data.readers.tu import read_tu

    read_tu(SEEDS / "tu").save(home / "c.safetensors")
    return home / "c.safetensors"


def read_collection(home: Path) -> object:
    import numpy as np

    from graphsc.data.batch import GraphBatch
    from graphsc.data.collection import GraphCollection

    collection = GraphCollection.open(home / "c.safetensors")
    batch = GraphBatch.gather(collection, np.arange(len(collection)))
    return [
        collection.name, collection.content_hash, repr(collection.features), repr(collection.describe()),
        batch.codes, batch.floats, batch.rowptr, batch.source, batch.ptr, batch.edge_codes, batch.y,
    ]  # fmt: skip


def read_checkpoint(home: Path) -> object:
    from torch.optim import Adam

    from graphsc.core.errors import DamagedFileError
    from graphsc.methods import make_recipe
    from graphsc.training.checkpoint import load_checkpoint

    collection = graphs()
    method = _method(make_recipe(METHOD, collection, SMALL), collection)  # type: ignore[arg-type]
    optimisers = {player.name: Adam(player.parameters) for player in method.players()}
    said: list[str] = []
    progress = load_checkpoint(home / "run" / "checkpoints", method, optimisers, {"seed": 0}, said.append)
    if said or progress is None:
        raise DamagedFileError(" ".join(said) or "nothing was there")  # a run says so and starts anew
    states = {name: optimiser.state_dict()["state"] for name, optimiser in optimisers.items()}
    return [progress, method.state_dict(), dict(method.state()), states]


_METHODS: list = []


def _method(recipe, collection):  # type: ignore[no-untyped-def]
    if not _METHODS:
        _METHODS.append(recipe.build(collection.features, 0))
    return _METHODS[0]


def read_model(home: Path) -> object:
    from graphsc.training.train import model_of

    model = model_of(home / "run")
    return [model.method.state_dict(), repr(model.recipe), repr(model.features)]


def read_embeddings(home: Path) -> object:
    from graphsc.core.run_folder import RunFolder
    from graphsc.training.train import stored_embeddings

    return stored_embeddings(RunFolder(home / "run"), 1, graphs().content_hash)  # type: ignore[attr-defined]


def seed_vectors(name: str) -> Callable[[Path], Path]:
    def seed(home: Path) -> Path:
        import numpy as np

        from graphsc.training.embed_io import write_embeddings

        rows = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
        write_embeddings(home / name, rows, np.arange(5))
        return home / name

    return seed


def read_vectors(name: str) -> Callable[[Path], object]:
    def read(home: Path) -> object:
        from graphsc.training.embedding_files import read_embeddings

        stored = read_embeddings(home / name)
        return [stored.rows, stored.ids, stored.left_out, stored.reasons]

    return read


def read_config(home: Path) -> object:
    from graphsc.core.run_folder import RunFolder

    return RunFolder(home / "run").load_config()


def read_metrics(home: Path) -> object:
    from graphsc.training.callbacks import Metrics

    return Metrics(home / "run" / "metrics.csv", keep=3).rows


def seed_metrics(home: Path) -> Path:
    from graphsc.training.callbacks import Metrics

    (home / "run").mkdir()
    metrics = Metrics(home / "run" / "metrics.csv")
    for epoch in (1, 2, 3):
        metrics.add({"epoch": epoch, "loss": 1.0 / (2 + epoch), "seconds": 0.25})
    return home / "run" / "metrics.csv"


def read_environments(home: Path) -> object:
    from graphsc.core.run_folder import RunFolder

    return RunFolder(home / "run").environments()


def _trial(seed: int = 0):  # type: ignore[no-untyped-def]
    from graphsc.evaluation.protocol import Protocol
    from graphsc.experiments.trial import ProbeTrial

    return ProbeTrial(data="motifs:30", method="raw", seed=seed, protocol=Protocol(folds=3))


def seed_result(home: Path) -> Path:
    from graphsc.experiments.runner import run_trial

    run_trial(_trial(), runs=home / "runs").save(home / "result.json")
    return home / "result.json"


def read_result(home: Path) -> object:
    from graphsc.experiments.result import load_result

    return load_result(home / "result.json").to_json()


def seed_results(home: Path) -> Path:
    from graphsc.experiments.result import ResultStore
    from graphsc.experiments.runner import run_trial

    store = ResultStore(home / "results")
    for seed in (0, 1):
        store.put(_trial(seed), run_trial(_trial(seed), runs=home / "runs"))
    return store.path(_trial())


def read_results(home: Path) -> object:
    from graphsc.experiments.result import ResultStore

    store = ResultStore(home / "results")
    results = [store.get(_trial(seed)) for seed in (0, 1)]
    return [None if result is None else result.to_json() for result in results]


def seed_card(home: Path) -> Path:
    from graphsc.training.model_io import JSON_NAME, Card, write_card

    card = Card(
        name="m", method="graphcl", preset="default", settings={"temperature": 0.2}, encoder="gin",
        encoder_settings={"width": 4}, training={"batch_size": 8, "learning_rate": 1e-3}, data="d",
        data_graphs=9, data_hash="ab", data_licence="CC0", graphs=8, held_out=1, epochs=2, seen=16, steps=2,
        passes_per_step=2.0, seconds=1.5, dimensions=8, parameters=40, licence="MIT", version="1", torch="2",
        first_loss=1.0, last_loss=0.5, losses=[1.0, 0.5],
    )  # fmt: skip
    write_card(home, card)
    return home / JSON_NAME


def read_card(home: Path) -> object:
    from graphsc.training.model_io import JSON_NAME
    from graphsc.training.model_io import read_card as read

    return read(home / JSON_NAME)


def _pretext(home: Path):  # type: ignore[no-untyped-def]
    from graphsc.training.callbacks import PretextScores

    return PretextScores(home / "pretext.json", graphs(), graphs(), 0)  # type: ignore[arg-type]


def seed_pretext(home: Path) -> Path:
    from graphsc.methods import make_recipe

    recipe = make_recipe("edgepred", graphs(), SMALL)  # type: ignore[arg-type]
    _pretext(home).evaluate(0, recipe.build(graphs().features, 0))  # type: ignore[attr-defined]
    return home / "pretext.json"


def read_pretext(home: Path) -> object:
    scores = _pretext(home)
    return [scores.scores, scores.passes]


def _curve(home: Path):  # type: ignore[no-untyped-def]
    from graphsc.experiments.probe import CurveProbe

    return CurveProbe(home / "curve.json", (0, 1), graphs(), None)  # type: ignore[arg-type]


def seed_curve(home: Path) -> Path:
    import numpy as np

    from graphsc.core.files import write_json
    from graphsc.experiments.result import Curve

    curve = Curve((0, 1), np.array([[3, 4], [4, 5]]), np.array([5, 5]))
    write_json(home / "curve.json", curve.to_json())
    return home / "curve.json"


def read_curve(home: Path) -> object:
    return _curve(home).curve()


def _sweep():  # type: ignore[no-untyped-def]
    from graphsc.experiments.sweep import Sweep

    space = {"encoder.width": [4, 8]}
    return Sweep("motifs:30", "graphcl", space, training={"epochs": 1}, folds=3, sampler="grid")


def seed_study(storage: str) -> Callable[[Path], Path]:
    def seed(home: Path) -> Path:
        from graphsc.experiments.sweep import SweepStudy, write_sweep

        study = SweepStudy(_sweep(), storage.format(home=home), "s")
        study.run(runs=home / "runs", lock=home / "lock")
        write_sweep(study, home)
        return Path(storage.format(home=home).removeprefix("sqlite:///"))

    return seed


def seed_plan(home: Path) -> Path:
    seed_study("{home}/sweep.journal")(home)
    return home / "best.yaml"


def read_plan(home: Path) -> object:
    from graphsc.experiments.plan import read_plan as read

    return [
        [table.name, table.title, [(name, trial.key()) for name, trial in table.rows()]]  # type: ignore[union-attr]
        for table in read(home / "best.yaml")
    ]


def read_study(storage: str) -> Callable[[Path], object]:
    def read(home: Path) -> object:
        from graphsc.experiments.sweep import SweepStudy

        study = SweepStudy(_sweep(), storage.format(home=home), "s")
        return [study.trials(), study.best()]

    return read


def seed_log(home: Path) -> Path:
    from graphsc.core.files import json_line

    lines = [
        json_line({"candidate": "a", "data": "d", "seed": seed, "inner": 81.25}) for seed in (1000, 1001)
    ]
    (home / "log.jsonl").write_text("".join(lines))
    return home / "log.jsonl"


def read_log(home: Path) -> object:
    from graphsc.experiments.search_log import read_log as read

    return read(home / "log.jsonl")


def seed_statistics(home: Path) -> Path:
    from graphsc.paper.tables import STATISTICS

    path = home / STATISTICS / "MUTAG.json"
    path.parent.mkdir(parents=True)
    shutil.copy(ROOT / "results" / STATISTICS / "MUTAG.json", path)
    return path


def read_statistics(home: Path) -> object:
    from graphsc.paper.tables import _measured

    return [_measured(home, "mutag", directed=directed) for directed in (False, True)]


def _chunks(home: Path, act: Callable):  # type: ignore[no-untyped-def, type-arg]
    from graphsc.core.chunks import open_chunks

    class KeptError(Exception):
        pass

    found = None
    try:
        with open_chunks(home / "v.bin", {"source": "abc", "version": 1}) as chunks:
            found = act(chunks)
            raise KeptError  # the folder stays
    except KeptError:
        return found


def seed_chunks(name: str) -> Callable[[Path], Path]:
    def seed(home: Path) -> Path:
        _chunks(home, lambda chunks: [chunks.write(k, bytes(range(9)), {"rows": 9, "k": k}) for k in (0, 1)])
        return home / ".v.bin.chunks" / name

    return seed


def read_chunks(home: Path) -> object:
    from graphsc.core.errors import DamagedFileError

    def read(chunks):  # type: ignore[no-untyped-def]
        if chunks.missing(2):
            raise DamagedFileError("it is computed again")
        return [[chunks.read(k), chunks.facts(k)] for k in (0, 1)]

    return _chunks(home, read)


def _record(home: Path):  # type: ignore[no-untyped-def]
    from graphsc.core.parts import FileTask, _Record

    class Task(FileTask[object]):
        def fingerprint(self) -> str:
            return "abc"

        def open(self) -> None: ...
        def pieces(self, missing):  # type: ignore[no-untyped-def]
            return iter(())

        def write(self, chunks, request) -> None: ...  # type: ignore[no-untyped-def]

    task = Task("source", home / "v.csv")
    task.settings, task.summary = {"model": "m", "version": 1}, {"rows": 9, "rejected": 1}
    return _Record(task)


def seed_record(home: Path) -> Path:
    record = _record(home)
    record.begin()
    (home / "v.csv").write_text("id,v0\n0,1.5\n")
    record.finish()
    return Path(record.path)


def read_record(home: Path) -> object:
    from graphsc.core.errors import DamagedFileError

    record = _record(home)
    if not record.is_current():
        raise DamagedFileError("it is computed again")
    return record.summary()


def read_predictor(home: Path) -> object:
    from graphsc.finetuning.model import load_predictor

    predictor = load_predictor(home / "tuned" / "seed-0" / "best.safetensors")
    return [predictor.method.state_dict(), predictor.tasks, predictor.kind, repr(predictor.facts)]


def read_transfer(home: Path) -> object:
    from graphsc.finetuning.result import load_transfer

    return load_transfer(home / "tuned" / "seed-0" / "result.json").to_json()


def read_split(home: Path) -> object:
    from graphsc.finetuning.dataset import read_dataset
    from graphsc.finetuning.splits import read_split as read

    if "rows" not in _ROWS:
        _ROWS["rows"] = read_dataset(home / "few.csv", labels="nitrogen").rows
    return read(next((home / "tuned").glob("split*.csv")), _ROWS["rows"])  # type: ignore[arg-type]


_ROWS: dict[str, object] = {}


def read_predictions(home: Path) -> object:
    from dataclasses import astuple

    from graphsc.finetuning.delivered import read_held_out

    held_out = read_held_out(home / "tuned", ("nitrogen",), "classification")
    return None if held_out is None else list(astuple(held_out))


def seed_baselines(home: Path) -> Path:
    """The predictions of simple models, beside those of a small fine-tuning."""
    tune_small(home, baselines=True)
    return home / "tuned" / "baselines.csv"


STORED = {
    "collection": Stored(seed_collection, read_collection),
    "checkpoint": Stored(of_run("checkpoints/*.safetensors"), read_checkpoint),
    "model": Stored(of_run("model.safetensors"), read_model),
    "embeddings": Stored(of_run("embeddings/*.safetensors"), read_embeddings),
    "config": Stored(of_run("config.yaml"), read_config),
    "metrics": Stored(seed_metrics, read_metrics),
    "environments": Stored(of_run("env.json"), read_environments),
    "result": Stored(seed_result, read_result),
    "results": Stored(seed_results, read_results, grows=True),
    "card": Stored(seed_card, read_card),
    "pretext": Stored(seed_pretext, read_pretext),
    "curve": Stored(seed_curve, read_curve),
    "plan": Stored(seed_plan, read_plan),
    "journal": Stored(
        seed_study("{home}/sweep.journal"), read_study("{home}/sweep.journal"), grows=True, restore=True
    ),
    "study": Stored(
        seed_study("sqlite:///{home}/sweep.db"), read_study("sqlite:///{home}/sweep.db"), restore=True
    ),
    "log": Stored(seed_log, read_log, grows=True),
    "statistics": Stored(seed_statistics, read_statistics),
    "chunk": Stored(seed_chunks("chunk-000000.bin"), read_chunks, restore=True),
    "chunk-facts": Stored(seed_chunks("chunk-000000.json"), read_chunks, restore=True),
    "chunk-identity": Stored(seed_chunks("identity.json"), read_chunks, restore=True),
    "record": Stored(seed_record, read_record),
    "predictor": Stored(of_tuning("seed-0/best.safetensors"), read_predictor),
    "transfer": Stored(of_tuning("seed-0/result.json"), read_transfer),
    "split": Stored(of_tuning("split.csv"), read_split),
    "predictions": Stored(of_tuning("predictions.csv"), read_predictions),
    "baselines": Stored(seed_baselines, read_predictions),
    "vectors-npz": Stored(seed_vectors("v.npz"), read_vectors("v.npz")),
    "vectors-parquet": Stored(seed_vectors("v.parquet"), read_vectors("v.parquet")),
}
