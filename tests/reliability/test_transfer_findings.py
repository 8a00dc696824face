"""What `make fuzz` once found in models that predict and their results: each is refused in one sentence."""

import json
from pathlib import Path

import numpy as np
import pytest

from graphsc.core.errors import DamagedFileError, GraphscError
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.evaluation.metrics import Task
from graphsc.finetuning.result import HeldOutScores, TransferResult, load_transfer

CHANGES = {
    "classes that are a number": lambda facts: facts.update(classes=3),
    "a kind nobody knows": lambda facts: facts.update(kind="x"),
    "a kind that is a list": lambda facts: facts.update(kind=[]),
    "tasks that are a text": lambda facts: facts.update(tasks="y"),
    "no tasks": lambda facts: facts.update(tasks=[]),
    "settings that are a text": lambda facts: facts.update(encoder_settings="x"),
    "a dropout beyond one": lambda facts: facts.update(dropout=2.0),
    "an encoder nobody knows": lambda facts: facts.update(encoder="x"),
    "a width of a million": lambda facts: facts["encoder_settings"].update(width=10**6),
    "a billion layers": lambda facts: facts["encoder_settings"].update(depth=10**9),
    "a width beyond any number": lambda facts: facts["encoder_settings"].update(width=2**70),
    "features of negative width": lambda facts: facts["features"].update(columns=[["atom", -65, None]]),
}


@pytest.fixture(scope="module")
def predictor(tmp_path_factory) -> Path:
    pytest.importorskip("rdkit")
    from graphsc.data.readers import open_collection
    from graphsc.finetuning.model import EncoderSpec, FineTuned, Predictor

    start = EncoderSpec("none", "molecule-gin", {"width": 4, "depth": 1}, open_collection(["CCO"]).features)
    method = FineTuned(start.build(0, 0.5), tasks=1)
    path = tmp_path_factory.mktemp("predictor") / "best.safetensors"
    Predictor(method, start, 0.5, ("y",), {"y": ("0", "1")}, {"epoch": 1}).save(path)
    return path


@pytest.mark.parametrize("name", CHANGES)
def test_predictor_with_other_facts(predictor, tmp_path, name):
    from graphsc.finetuning.model import load_predictor

    assert load_predictor(predictor).tasks == ("y",)
    tensors, facts = load_tensors(predictor, "predictor")
    CHANGES[name](facts)
    save_tensors(tmp_path / "p.safetensors", "predictor", tensors, facts)
    with pytest.raises(GraphscError) as refused:
        load_predictor(tmp_path / "p.safetensors")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": ["a", "b", "c"]},
        {"tasks": []},
        {"tasks": 3},
        {"rules": []},
        {"rules": {"last": 3}},
        {"kind": "x"},
    ],
)
def test_transfer_result_whose_parts_do_not_fit(tmp_path, change):
    labels, scores = np.array([0, 1, 1, 0], np.float32), np.array([0.1, 0.7, 0.4, 0.5], np.float32)
    judged = HeldOutScores.of([Task(labels, scores)], [], "classification", 1, 0.1)
    result = TransferResult(
        {}, {}, ("a",), "classification", np.array([0, 0, 2, 2, 2, 2]), {"last": judged}, ""
    )
    result.save(tmp_path / "r.json")
    assert load_transfer(tmp_path / "r.json").tasks == ("a",)
    stored = json.loads((tmp_path / "r.json").read_text())
    (tmp_path / "r.json").write_text(json.dumps({**stored, **change}))
    with pytest.raises(DamagedFileError, match="damaged"):
        load_transfer(tmp_path / "r.json")
