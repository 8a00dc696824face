"""Every place that loads or trains a model takes a device, and names one that is missing."""

import sys

import pytest
import torch
from sklearn.base import clone

from graphsc import GraphEmbedder, open_collection
from graphsc.cli.main import main
from graphsc.core.errors import ConfigError
from graphsc.experiments import embeddings_of, explore, search_library
from graphsc.experiments.comparison import compare
from graphsc.training.distributed import driver_device, make_fabric, pick_device
from graphsc.training.embed_io import embed_files, embed_source
from graphsc.training.train import model_of, train
from graphsc.training.trainer import TrainSettings

MISSING = next(
    name
    for name, present in (("mps", torch.backends.mps.is_available()), ("cuda", torch.cuda.is_available()))
    if not present
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(open_collection("motifs:20"), training=TrainSettings(epochs=1), device="cpu", out=folder)
    return folder


def refused(call):
    with pytest.raises(ConfigError, match=f"no usable {MISSING} device"):
        call()


@pytest.mark.parametrize("load", [GraphEmbedder.load, GraphEmbedder.from_pretrained, model_of])
def test_loading_refuses_a_missing_device(run, load):
    refused(lambda: load(run, device=MISSING))


@pytest.mark.parametrize("jobs", [1, 2])
def test_embedding_refuses_a_missing_device(run, tmp_path, jobs):
    (tmp_path / "in").mkdir()
    open_collection("motifs:4").save(tmp_path / "in" / "a.safetensors")
    refused(lambda: embed_source(run, "motifs:4", tmp_path / "a.csv", jobs=jobs, device=MISSING))
    refused(lambda: embed_files(run, tmp_path / "in", tmp_path / "out", jobs=jobs, device=MISSING))


def test_a_map_and_a_search_refuse_a_missing_device(run, tmp_path):
    refused(lambda: embeddings_of(run, "motifs:4", device=MISSING))
    refused(lambda: explore(run, "motifs:4", device=MISSING))
    refused(lambda: search_library(run, "CCO", tmp_path / "library.csv", device=MISSING))
    assert embeddings_of(run, "motifs:4", device="cpu").rows.shape == (4, 96)


@pytest.mark.parametrize("verb", ["explore", "similar", "outliers", "cluster"])
def test_verbs_that_embed_take_a_device(run, tmp_path, monkeypatch, capsys, verb):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["graphsc", verb, str(run), "--data", "motifs:6", "--device", MISSING])
    with pytest.raises(SystemExit):
        main()
    assert f"this machine has no usable {MISSING} device" in capsys.readouterr().err


def test_comparison_refuses_a_missing_device_before_anything_runs(tmp_path):
    options = {"results": tmp_path / "results", "runs": tmp_path / "runs", "device": MISSING}
    refused(lambda: compare(["motifs:40"], ["raw"], seeds=1, **options))
    assert not (tmp_path / "runs").exists()


def test_sweep_refuses_a_missing_device(tmp_path):
    pytest.importorskip("optuna")
    from graphsc.experiments.sweep import Sweep, SweepStudy

    study = SweepStudy(Sweep("motifs:40", "graphsc", {"weak_rate": [0.1]}), f"{tmp_path}/a.journal", "s")
    refused(lambda: study.run(1, runs=tmp_path, lock=tmp_path / "lock", device=MISSING))


def test_prediction_refuses_a_missing_device(tmp_path):
    pytest.importorskip("rdkit")
    from graphsc.finetuning.dataset import read_dataset
    from graphsc.finetuning.finetune import FineTuneSettings, finetune
    from graphsc.finetuning.predict import predict_files, predict_table

    (tmp_path / "in").mkdir()
    table = tmp_path / "in" / "t.csv"
    table.write_text("smiles,label\n" + "".join(f"{'C' * k}O,{k % 2}\n" for k in range(1, 31)))
    options = {"settings": FineTuneSettings(epochs=1), "encoder_settings": {"width": 4, "depth": 1}}
    finetune(read_dataset(table), out=tmp_path / "tuned", split="random", device="cpu", **options)
    refused(lambda: finetune(read_dataset(table), out=tmp_path / "t2", split="random", device=MISSING))
    refused(lambda: predict_table(tmp_path / "tuned", table, tmp_path / "p.csv", device=MISSING))
    refused(lambda: predict_files(tmp_path / "tuned", tmp_path / "in", tmp_path / "out", device=MISSING))
    assert predict_table(tmp_path / "tuned", table, tmp_path / "p.csv", device="cpu").rows == 30


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [("auto", "cuda"), ("cuda", "cuda"), ("cuda:1", "cuda:1"), (torch.device("cuda", 1), "cuda:1"),
     (torch.device("cuda"), "cuda"), (torch.device("cpu"), "cpu"), ("cpu:0", "cpu")],
)  # fmt: skip
def test_a_device_is_a_name_with_or_without_a_number_or_one_of_torch(two_gpus, wanted, chosen):
    assert pick_device(wanted) == chosen


@pytest.mark.parametrize(
    ("wanted", "message"),
    [("cuda:2", "no device 'cuda:2'; the last one is cuda:1"), ("cuda:-1", "unknown device 'cuda:-1'"),
     ("cuda:", "unknown device"), ("gpu", "unknown device 'gpu'; use auto, cpu, cuda, cuda:NUMBER or mps"),
     ("cpu:1", "the last one is cpu:0")],
)  # fmt: skip
def test_a_device_that_does_not_exist_is_named(two_gpus, wanted, message):
    with pytest.raises(ConfigError, match=message):
        pick_device(wanted)


def test_a_gpu_by_its_number_is_the_one_that_fabric_uses(two_gpus, monkeypatch):
    import lightning_fabric

    asked = []

    class Fabric:
        def __init__(self, **options):
            asked.append((options["accelerator"], options["devices"]))

        def launch(self):
            pass

    monkeypatch.setattr(lightning_fabric, "Fabric", Fabric)
    for device in ("cuda:1", "cuda", "cpu"):
        make_fabric(device, "full")
    assert asked == [("gpu", [1]), ("gpu", 1), ("cpu", 1)]
    with pytest.raises(ConfigError, match="cuda:1 is one device, not 2; use --device cuda"):
        make_fabric("cuda:1", "full", devices=2)


def test_several_processes_share_all_gpus_and_not_one_by_its_number(two_gpus):
    assert driver_device("cuda:1", 1, None) == "cuda:1"
    assert driver_device("cuda", 2, None) == "cpu"
    for jobs, cluster in ((2, None), (None, None), (1, "tcp://here:8786")):
        with pytest.raises(ConfigError, match="several processes cannot use the device 'cuda:1' alone"):
            driver_device("cuda:1", jobs, cluster)


def test_an_embedder_takes_a_device_of_torch(run):
    graphs = open_collection("motifs:20")
    embedder = clone(GraphEmbedder("graphcl", epochs=1, device=torch.device("cpu")))
    assert embedder.fit_transform(graphs).shape == (20, 96)
    assert GraphEmbedder.load(run, torch.device("cpu")).transform(graphs).shape == (20, 96)


def test_a_loaded_embedder_stays_on_the_device_it_was_given(run):
    embedder = GraphEmbedder.load(run, device="cpu")
    assert embedder.get_params()["device"] == "cpu"
    assert next(embedder.model_.method.parameters()).device.type == "cpu"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_auto_loads_onto_the_gpu_and_embeds_as_on_the_cpu(run):  # pragma: no cover
    graphs = open_collection("motifs:20")
    on_gpu, on_cpu = GraphEmbedder.load(run), GraphEmbedder.load(run, device="cpu")
    assert next(on_gpu.model_.method.parameters()).is_cuda
    torch.testing.assert_close(on_gpu.transform(graphs), on_cpu.transform(graphs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("verb", ["train", "pretrain", "embed", "predict", "compare", "sweep", "finetune"])
def test_verbs_have_the_option(verb, capsys):
    from graphsc.cli.main import run

    assert run([verb, "--help"]) == 0
    assert "--device " in capsys.readouterr().out


def test_the_option_of_a_verb_reaches_its_model(run, tmp_path, capsys):
    from graphsc.cli.main import run as graphsc

    command = ["embed", str(run), "motifs:4", "--out", str(tmp_path / "a.csv"), "--device"]
    assert graphsc([*command, MISSING]) == 2
    assert f"no usable {MISSING} device" in capsys.readouterr().err
    assert graphsc([*command, "cpu"]) == 0
