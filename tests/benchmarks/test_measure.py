"""How the benchmarks time two sides, and what they conclude."""

import subprocess
import sys
import time

import pytest

from benchmarks.measure import Result, Times, compare, interleave, live_descendant_seconds, take_turns
from graphsc.core.errors import NotFoundError

# When told to, spends CPU time, says how much, and stays alive until its input ends.
CHILD = """
import sys, time
sys.stdin.readline()
while time.process_time() < 0.4:
    pass
print(time.process_time(), flush=True)
sys.stdin.read()
"""


def result(ratio, bar, goal, better):
    return Result("start", "", 1, 1, 1, 1, ratio, ratio, bar, goal, better, "")


@pytest.mark.parametrize(
    ("ratio", "bar", "goal", "better", "verdict"),
    [
        (4.0, 4.0, 6.0, "higher", "pass"),
        (6.0, 4.0, 6.0, "higher", "goal"),
        (3.9, 4.0, 6.0, "higher", "MISSED"),
        (9.0, 4.0, None, "higher", "pass"),
        (3.0, 3.0, 2.0, "lower", "pass"),
        (2.0, 3.0, 2.0, "lower", "goal"),
        (3.1, 3.0, 2.0, "lower", "MISSED"),
        (0.1, 3.0, None, "lower", "pass"),
    ],
)
def test_verdict(ratio, bar, goal, better, verdict):
    assert result(ratio, bar, goal, better).verdict == verdict


@pytest.mark.parametrize(
    ("better", "goal", "text"),
    [("higher", 6.0, "≥ 4 (6)"), ("lower", None, "≤ 4"), ("lower", 2.5, "≤ 4 (2.5)")],
)
def test_bar_shows_its_direction_and_the_goal(better, goal, text):
    assert result(1.0, 4.0, goal, better).bar_text == text


def test_sides_take_turns_after_the_warm_up():
    calls = []
    times = take_turns([lambda: calls.append("a"), lambda: calls.append("b")], repeats=3, warm_up=1)
    assert calls == ["a", "b"] * 4
    assert [(len(side.wall), len(side.cpu)) for side in times] == [(3, 3), (3, 3)]


OURS, OTHER = Times([2.0, 1.0, 4.0], [0.5, 1.0, 3.0]), Times([8.0, 9.0, 6.0], [5.0, 7.0, 4.0])


@pytest.mark.parametrize(
    ("benchmark", "better", "ratio", "median"),
    [
        ("ranks", "higher", 6.0 / 1.0, 8.0 / 2.0),  # by wall time
        ("ranks", "lower", 1.0 / 6.0, 2.0 / 8.0),
        ("encoder", "higher", 4.0 / 0.5, 5.0 / 1.0),  # by CPU time
        ("encoder", "lower", 0.5 / 4.0, 1.0 / 5.0),
    ],
)
def test_ratio_is_of_minima_by_the_clock_of_the_row(benchmark, better, ratio, median):
    found = compare(benchmark, "case", OURS, OTHER, bar=1.0, better=better, against="it")
    assert found.ratio == pytest.approx(ratio)
    assert found.median_ratio == pytest.approx(median)
    assert (found.ours_ms, found.other_ms) == (1000.0, 6000.0)
    assert (found.ours_cpu_ms, found.other_cpu_ms) == (500.0, 4000.0)
    assert found.repeats == 3


def test_wall_time_that_contradicts_the_cpu_time_is_mentioned():
    busy = compare("encoder", "case", OURS, OTHER, bar=1.0, better="higher", against="it", note="so")
    assert busy.note == "so; by wall time 6.00"
    calm = Times([1.0], [1.0])
    assert compare("encoder", "case", calm, calm, bar=1.0, better="higher", against="it").note == ""


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_cpu_time_of_one_side_is_not_counted_for_the_other():
    found = interleave(
        "encoder", "case", lambda: spin(0.02), lambda: spin(0.1), bar=1.0, better="higher", against="it",
        repeats=3, warm_up=0,
    )  # fmt: skip
    assert found.ours_cpu_ms == pytest.approx(20, abs=5)
    assert found.other_cpu_ms == pytest.approx(100, abs=10)


def work(child):
    """Let the child work; the CPU seconds it has spent by its own clock."""
    child.stdin.write("\n")
    child.stdin.flush()
    return float(child.stdout.readline())


@pytest.fixture
def child():
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def others():
    """CPU seconds of processes that earlier tests have left waiting."""
    return live_descendant_seconds() if sys.platform == "linux" else 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_cpu_time_of_a_living_child_is_what_the_child_says(others, child):
    spent = work(child)
    assert live_descendant_seconds() - others == pytest.approx(spent, abs=0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_workers_that_stay_alive_count_for_the_side_that_uses_them(child):
    ours, others = take_turns([lambda: None, lambda: work(child)], repeats=1, workers=True)
    assert others.cpu[0] > 0.3
    assert ours.cpu[0] < 0.3  # the child may still be starting


def test_a_child_that_has_ended_counts_too():
    command = [sys.executable, "-c", CHILD]
    (times,) = take_turns(
        [lambda: subprocess.run(command, input="", text=True, capture_output=True)], repeats=1
    )
    assert times.cpu[0] >= 0.4


def test_a_system_without_proc_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="cannot be read on this system"):
        live_descendant_seconds(proc=tmp_path)


def test_descendants_are_found_by_their_parents_whatever_their_names(tmp_path):
    """Ticks by hand: 11 of the child and 22 of the grandchild, of which 5 and 7 are of its own children."""
    (tmp_path / "stat").write_text("")
    for pid, parent, name, ticks in (
        (10, 1, "root", (100, 0, 0, 0)),
        (11, 10, "a) b (c", (4, 2, 5, 0)),
        (12, 11, "python", (9, 6, 0, 7)),
        (13, 1, "stranger", (1000, 0, 0, 0)),
    ):
        (tmp_path / str(pid)).mkdir()
        before = " ".join(["0"] * 9)  # fields 5 to 13
        text = f"{pid} ({name}) S {parent} {before} {' '.join(map(str, ticks))} 0 0"
        (tmp_path / str(pid) / "stat").write_text(text)
    import os

    assert live_descendant_seconds(10, tmp_path) == 33 / os.sysconf("SC_CLK_TCK")


def test_the_bridge_is_what_a_side_costs_beyond_the_other():
    """By hand: minima of CPU seconds 5 and 4 leave 1 of 4; medians 6 and 5 leave 1 of 5."""
    from benchmarks.bridge import overhead

    bridged, alone = Times([8.0, 7.0, 9.0], [6.0, 5.0, 7.0]), Times([4.0, 5.0, 6.0], [4.0, 5.0, 6.0])
    found = overhead("case", bridged, alone)
    assert (found.ours_cpu_ms, found.other_cpu_ms) == (1000.0, 4000.0)
    assert found.ratio == pytest.approx(0.25)
    assert found.median_ratio == pytest.approx(0.2)
    assert found.note == "by wall time 0.75"


def test_both_sides_of_the_bridge_see_every_batch_twice():
    from benchmarks.bridge import twice

    calls = []
    first, second = twice(calls.append, iter("ab").__next__)
    for _ in range(2):
        first()
        second()
    assert calls == ["a", "a", "b", "b"]
