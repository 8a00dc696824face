"""`graphsc`: one command with verbs, one line for every error, and an exit code that means something."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from graphsc import __version__
from graphsc.cli import (
    about,
    data,
    demo,
    evaluate,
    finetune,
    pretrain,
    report,
    reproduce,
    results,
    sweep,
    train,
)
from graphsc.core.errors import GraphscError

app = App(
    name="graphsc",
    help="One good vector a graph, learned without labels. With --debug, errors show where they come from.",
    version=f"graphsc {__version__}",
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_none",
)
app.command(data.app)
app.command(train.train)
app.command(pretrain.pretrain)
app.command(pretrain.pack)
app.command(train.embed)
app.command(finetune.finetune)
app.command(finetune.predict)
app.command(finetune.yardstick)
app.command(evaluate.evaluate)
app.command(evaluate.compare)
app.command(report.explore)
app.command(report.report)
app.command(results.app)
app.command(reproduce.reproduce)
app.command(sweep.sweep)
app.command(about.methods)
app.command(pretrain.models)
app.command(about.info)
app.command(demo.demo)


def main() -> None:
    """Entry point of the command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one verb and give its exit code; any error is one line on stderr."""
    debug = "--debug" in arguments or bool(os.environ.get("GRAPHSC_DEBUG"))
    # The same whether Ctrl-C comes while we parse, import or work.
    before = signal.signal(signal.SIGINT, _interrupted)
    try:
        app([argument for argument in arguments if argument != "--debug"])
    except GraphscError as error:
        return _report(str(error), error.exit_code, debug)
    except CycloptsError as error:
        return _report(f"{str(error).rstrip('.')}; see graphsc --help", 2, debug)
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:  # the last line of defence: a bug of ours, still one line
        found = f"internal error: {type(error).__name__}: {error} (run with --debug for the traceback)"
        return _report(found, 1, debug)
    finally:
        signal.signal(signal.SIGINT, before)
    return 0


def _interrupted(*_: object) -> None:
    sys.stderr.write("stopped\n")
    sys.exit(130)


def _report(sentence: str, code: int, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    sys.stderr.write(f"error: {' '.join(sentence.split())}\n")
    return code
