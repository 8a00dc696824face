"""Slips of the keyboard are answered before torch is imported, and every --help is complete."""

import inspect
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from cyclopts import App

from graphsc.cli import checks
from graphsc.cli.main import app

PROGRAM = """
import json, sys
from graphsc.cli.main import run

said = []
for arguments in json.loads(sys.argv[1]):
    code = run(arguments)
    said.append([code, [name for name in ("torch", "sklearn", "scipy", "matplotlib") if name in sys.modules]])
sys.stdout.write(json.dumps(said))
"""
MISTAKES = [
    ("train mutga", "did you mean 'mutag'"),
    ("train mutag --method grahpsc", "did you mean 'graphsc'"),
    ("train mutag --encoder gni", "did you mean 'gin'"),
    ("train mutag --set marign=1", "did you mean 'margin'"),
    ("train mutag --set encoder.widht=1", "did you mean 'encoder.width'"),
    ("train mutag --features lables", "unknown feature block 'lables'"),
    ("train m.csv --smiles-column smlies", "no column 'smlies'"),
    ("train m.csv --id-column nmae", "no column 'nmae'"),
    ("train plain.csv", "columns: a, b"),
    ("train plain.csv --reader egdes", "did you mean 'edges'"),
    ("train plain.csv --reader edges --reader-set source_colum=a", "did you mean 'source_column'"),
    ("train plain.csv --reader edges --reader-set source=a", "a reader has no setting 'source'"),
    ("train plain.csv --reader edges --reader-set source_column=z", "no column 'z'"),
    ("cluster v.csv --out x.csv", "cannot write a page to a .csv file"),
    ("similar v.csv --to A9", "no graph has the id 'A9'; ids are A1"),
    ("similar v.npz --to A9", "no graph has the id 'A9'; ids are A1"),
    ("similar graphsc-moses --data ids.csv --to A9", "no graph has the id 'A9'; ids are A1"),
    ("similar graphsc-moses --data m.csv --to 2", "no graph has the id '2'; ids are 0"),
    ("train mutag --epoch 3", "--epochs"),
    ("pretrain nowhere.csv", "no data set, file or folder 'nowhere.csv'"),
    ("pretrain m.csv --method grahpcl", "did you mean 'graphcl'"),
    ("pretrain moses:1,nowhere.csv:2", "no data set, file or folder 'nowhere.csv:2'"),
    ("pretrain moses:0,zinc250k:1", "the weight of moses must be a positive number"),
    ("pretrain m.csv --start nowhere", "there is no run folder, model file or model"),
    ("frozen nowhere", "there is no run folder, model file or model"),
    ("embed nowhere mutag --out v.csv", "no run folder, model file or model called 'nowhere'"),
    ("embed nowhere/run mutag --out v.csv", "nowhere/run"),
    ("embed graphsc-moses mols.csv --out v.csv", "no data set, file or folder 'mols.csv'"),
    ("embed graphsc-moses m.csv --out v.txt", "end the name in .npz"),
    ("evaluate nowhere", "holds no run"),
    ("compare mutga", "did you mean 'mutag'"),
    ("compare mutag --methods graphsc,untraind", "did you mean 'untrained'"),
    ("compare mutag --set marign=1", "did you mean 'margin'"),
    ("compare mutag --out x.pdf", ".tex"),
    ("sweep mutag --space nowhere.yaml", "nowhere.yaml"),
    ("sweep mutga --space paper", "did you mean 'mutag'"),
    ("report nowhere", "there is no run (nowhere)"),
    ("explore nowhere", "called 'nowhere'"),
    ("explore nowhere.csv", "nowhere.csv"),
    ("finetune graphsc-mose m.csv", "did you mean 'graphsc-moses'"),
    ("finetune none nowhere.csv", "nowhere.csv"),
    ("finetune none m.csv --labels z", "no column 'z' (m.csv); columns: smiles, y"),
    ("finetune none c.csv --labels y --decimal .", "'1,5' in 'y' has a ',', but decimal is '.'"),
    ("yardstick c.csv --labels y --id-column z", "no column 'z'"),
    ("predict nowhere m.csv --out p.csv", "there is no fine-tuned model (nowhere)"),
    ("yardstick m.csv --labels z", "no column 'z'"),
    ("results run nowhere.yaml", "there is no plan (nowhere.yaml)"),
    ("reproduce tabel3", "did you mean 'table3'"),
    ("pack nowhere --out x.safetensors", "called 'nowhere'"),
    ("info nowhere", "called 'nowhere'"),
    ("data check mutga", "did you mean 'mutag'"),
    ("data get mutga", "did you mean 'mutag'"),
    ("runs nowhere", "there is no such folder (nowhere)"),
    ("demo mutga", "did you mean 'mutag'"),
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Exit code, slow modules that are imported, and the error line of every mistake, in one process."""
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "m.csv").write_text("smiles,y\nCCO,1\nCC,0\n")
    (folder / "c.csv").write_text("smiles;y\nCCO;1,5\nCC;0,5\n")
    (folder / "plain.csv").write_text("a,b\n1,2\n")
    (folder / "ids.csv").write_text("id,smiles\nA1,CCO\nB2,CC\n")
    (folder / "v.csv").write_text("id,v0,v1\nA1,0.5,1.5\nB2,2.5,3.5\n")
    np.savez(folder / "v.npz", vectors=np.ones((2, 2), np.float32), ids=np.array(["A1", "B2"]))
    commands = json.dumps([command.split() for command, _ in MISTAKES])
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, commands], cwd=folder, capture_output=True, text=True, check=True
    )
    errors = [line for line in child.stderr.splitlines() if line.startswith("error: ")]
    return list(zip(json.loads(child.stdout), errors, strict=True))


@pytest.mark.parametrize("number", range(len(MISTAKES)), ids=[command for command, _ in MISTAKES])
def test_a_slip_of_the_keyboard_is_answered_without_importing_torch(answers, number):
    (code, slow), error = answers[number]
    assert code == 2
    assert MISTAKES[number][1] in error
    assert slow == []


def test_the_names_that_are_checked_early_are_those_of_the_registries():
    from graphsc.encoders import ENCODERS
    from graphsc.methods import METHODS

    def own(registry):  # tests register others
        entries = {name: registry.get(name) for name in registry}
        return {n for n, e in entries.items() if getattr(e, "make", e).__module__.startswith("graphsc.")}

    assert set(checks.method_modules()) == own(METHODS)
    assert set(checks.encoder_modules()) == own(ENCODERS)
    for package, modules, registry in (
        ("graphsc.methods", checks.method_modules(), METHODS),
        ("graphsc.encoders", checks.encoder_modules(), ENCODERS),
    ):
        for name, module in modules.items():
            entry = registry.get(name)
            parameters = inspect.signature(getattr(entry, "make", entry)).parameters.values()
            declared = {
                parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY
            }
            assert declared <= checks.keywords(package, module)


def test_every_option_of_every_reader_passes():
    from graphsc.cli.data import ReaderOptions
    from graphsc.data.readers import READERS, load_readers

    load_readers()
    assert set(checks.reader_modules()) <= set(READERS)
    for name in checks.reader_modules():
        parameters = inspect.signature(READERS.get(name).read).parameters.values()
        options = [f"{p.name}=1" for p in parameters if p.kind is p.KEYWORD_ONLY]
        assert options
        checks.check_reader(ReaderOptions(reader=name, reader_set=options))


def test_a_setting_that_is_valid_passes():
    checks.check_settings(["graphsc"], "gin", ["margin=1", "encoder.width=2", "training.clip=1", "epochs=3"])
    checks.check_settings(["of-another-package"], "gin", ["anything=1"])


def verbs(group, path=("graphsc",)):
    """Every command with its words."""
    for name in group:
        if name.startswith("-"):
            continue
        command = group[name]
        if isinstance(command, App) and command.default_command is None:
            yield from verbs(command, (*path, name))
        else:
            yield (*path, name), command


VERBS = {" ".join(path): command for path, command in verbs(app)}


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_has_an_example(verb):
    text = inspect.getdoc(VERBS[verb].default_command)
    (example,) = re.findall(r"^Example: (.*)$", text, re.M)
    words = verb.split()
    assert example.split()[: len(words)] == words or verb == "graphsc baseline"


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_names_all_defaults(verb):
    """An option shows its default, or says in words what happens without it."""
    command = VERBS[verb]
    silent = []
    for argument in command.assemble_argument_collection():
        parameter = argument.parameter
        if argument.required or not argument.show or argument.field_info.kind.name == "VAR_POSITIONAL":
            continue
        default = argument.field_info.default
        if default is None and "default" not in (parameter.help or "").lower():
            silent.append(argument.name)
    assert silent == []
