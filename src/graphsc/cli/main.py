"""The `graphsc` command: its verbs, one-line error messages and exit codes."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from cyclopts import App, CycloptsError, Group

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
from graphsc.core.errors import CannotWriteError, GraphscError, GraphscWarning
from graphsc.core.secrets import hide_secrets

app = App(
    name="graphsc",
    help="Learn embeddings of graphs without labels, evaluate them, and fine-tune on molecules.\n\n"
    "New here? Run 'graphsc demo'. Add --debug to any command to see the traceback of an error.",
    version=f"graphsc {__version__}",
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_none",
)

VERBS = {
    "Start here": (demo.demo, about.info, about.methods, data.app),
    "Train and embed": (train.train, train.embed, pretrain.pretrain, pretrain.pack, pretrain.models),
    "Predict properties of molecules": (finetune.finetune, finetune.predict, finetune.yardstick),
    "Evaluate and compare": (evaluate.evaluate, evaluate.compare, report.report, report.explore),
    "Run many experiments": (reproduce.reproduce, results.app, sweep.sweep),
    "Options": (app["--help"], app["--version"]),
}
for title, verbs in VERBS.items():
    group = Group.create_ordered(title)
    for verb in verbs:
        if isinstance(verb, App):
            verb.group = group
        else:
            app.command(verb, group=group, alias="baseline" if verb is finetune.yardstick else None)
for sub_app in (data.app, results.app):
    app.command(sub_app)


def main() -> None:
    """Entry point of the command."""
    _prepare_streams()
    sys.exit(run(sys.argv[1:]))


def _prepare_streams() -> None:
    """Make any standard stream usable: closed, or of an encoding without the letters of a name."""
    for number in (0, 1, 2):  # a file opened later would take the place of a closed stream
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends


class _ClosedOutput(io.TextIOBase):
    """Standard output that was closed before the start; nothing that is printed may be lost in silence."""

    def write(self, text: str) -> int:
        raise CannotWriteError("standard output is closed", hint="redirect it to a file or to /dev/null")


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; any error is one line on stderr."""
    debug = "--debug" in arguments or bool(os.environ.get("GRAPHSC_DEBUG"))
    # Ctrl-C ends alike while parsing, importing and working.
    previous_handler = signal.signal(signal.SIGINT, _on_interrupt)
    show_warning = warnings.showwarning
    warnings.showwarning = partial(_show_warning, show_warning)
    try:
        app([argument for argument in arguments if argument != "--debug"])
        sys.stdout.flush()  # here, because Python would report a full disk only after the exit code is set
    except GraphscError as error:
        return _print_error(str(error), error.exit_code, debug)
    except CycloptsError as error:
        return _print_error(f"{str(error).rstrip('.')}; see graphsc --help", 2, debug)
    except BrokenPipeError:
        _discard_output()  # its reader, such as `head`, is gone
        return 141
    except Exception as error:  # a bug in GraphSC, or standard output on a full disk
        if isinstance(error, OSError) and error.errno in _OUTPUT_LOST and error.filename is None:
            _discard_output()
            return _print_error(f"cannot write standard output: {error.strerror}", 2, debug)
        message = f"internal error: {type(error).__name__}: {error} (run with --debug for the traceback)"
        return _print_error(message, 1, debug)
    finally:
        signal.signal(signal.SIGINT, previous_handler)
        warnings.showwarning = show_warning
    return 0


_OUTPUT_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _discard_output() -> None:
    """Keep Python from failing again at exit, where it writes the rest of standard output."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _on_interrupt(*_: object) -> None:
    sys.stderr.write("stopped\n")
    sys.exit(130)


def _show_warning(
    others: Callable[..., None], message: Warning | str, category: type[Warning], *rest: Any, **named: Any
) -> None:
    """Show our warnings in one line, and those of other packages as usual."""
    if issubclass(category, GraphscWarning):
        sys.stderr.write(f"warning: {' '.join(str(message).split())}\n")
    else:
        others(message, category, *rest, **named)


def _print_error(message: str, code: int, debug: bool) -> int:
    if debug:
        import traceback

        sys.stderr.write(hide_secrets(traceback.format_exc()))
    sys.stderr.write(f"error: {hide_secrets(' '.join(message.split()))}\n")
    return code
