import pickle
import signal

import pytest

from graphsc.core import errors
from graphsc.core.errors import DataError, DivergedError, GraphscError
from graphsc.core.files import StoppedError


def test_sentence_has_what_where_and_hint():
    error = DataError("graph 3 has no nodes", where="a.txt, line 7", hint="leave it out")
    assert str(error) == "graph 3 has no nodes (a.txt, line 7); leave it out"


def test_sentence_without_where_and_hint_is_what_alone():
    assert str(DataError("graph 3 has no nodes")) == "graph 3 has no nodes"


def test_sentence_is_one_line():
    assert str(DataError("a\nb\r\n  c", where="d\te")) == "a b c (d e)"


def test_bad_input_exits_with_2_and_divergence_with_3():
    classes = [
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, GraphscError)
    ]
    assert {each.__name__: each.exit_code for each in classes} == {
        "GraphscError": 2,
        "DataError": 2,
        "DamagedFileError": 2,
        "ConfigError": 2,
        "UnsafeArchiveError": 2,
        "NotFoundError": 2,
        "MissingExtraError": 2,
        "CannotWriteError": 2,
        "DivergedError": 3,
    }
    assert all(issubclass(each, GraphscError) for each in classes)


def test_an_error_can_be_pickled():
    error = pickle.loads(pickle.dumps(DivergedError("loss is nan", where="epoch 2", hint="lower lr")))
    assert (str(error), error.what, error.where, error.hint) == (
        "loss is nan (epoch 2); lower lr",
        "loss is nan",
        "epoch 2",
        "lower lr",
    )


def test_a_stop_can_be_pickled():
    error = pickle.loads(pickle.dumps(StoppedError(signal.SIGTERM, "epoch 2")))
    assert str(error) == "stopped by SIGTERM (epoch 2); run the same command to resume"
    assert error.exit_code == 143


def test_errors_can_be_caught_by_their_base():
    with pytest.raises(GraphscError):
        raise DivergedError("loss is nan")
