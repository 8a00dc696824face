"""Train, kill at random moments and resume; a program of its own, because it forks.

Usage: python kill_program.py FOLDER KILLS SEED... It trains FOLDER/whole without a kill, then
FOLDER/killed-SEED for each seed. Forking after the imports makes a restart cheap, so that many kills fit into
a few seconds and hit the training itself. Prints the number of kills that hit a running process.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from graphsc.data.readers import open_collection
from graphsc.training import trainer
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

torch.set_num_threads(1)
trainer.SAVE_EVERY = 0.03  # many checkpoints within an epoch, so that kills hit their writing


def work(folder: Path) -> None:
    collection = open_collection("motifs:120")
    train(collection, training=TrainSettings(epochs=8, batch_size=16), out=folder)


def work_with_kills(folder: Path, kills: int, seed: int, seconds: float) -> int:
    """Kill a run that takes `seconds` up to `kills` times; returns how many kills hit a running process."""
    rng = random.Random(seed)
    hits = 0
    started = time.monotonic()
    while hits < kills and time.monotonic() - started < 240:
        pid = os.fork()
        if pid == 0:
            work(folder)
            os._exit(0)
        time.sleep(rng.uniform(0.05, 0.3) * seconds)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            hits += 1
        elif hits < kills:
            # It finished first: start a fresh run, so that every kill has something to hit.
            break
    work(folder)
    return hits


def main() -> None:
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    train(open_collection("motifs:20"), training=TrainSettings(epochs=1))  # imports what is imported late
    started = time.monotonic()
    work(folder / "whole")
    seconds = time.monotonic() - started
    print(sum(work_with_kills(folder / f"killed-{each}", kills, int(each), seconds) for each in sys.argv[3:]))


main()
