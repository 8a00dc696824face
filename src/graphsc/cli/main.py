"""The `graphsc` command: its verbs, one-line error messages and exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
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
    runs,
    similarity,
    sweep,
    train,
)
from graphsc.core.errors import CannotWriteError, ConfigError, GraphscError, GraphscWarning
from graphsc.core.registry import PLUGINS, load_plugin
from graphsc.core.secrets import hide_secrets

app = App(
    name="graphsc",
    help="Learn embeddings of graphs without labels, evaluate them, and fine-tune on molecules.\n\n"
    "New here? Run 'graphsc demo'. Add --debug to any command to see the traceback of an error, and "
    "--plugin FILE.py (or a module; repeatable) to use methods, views, encoders or readers of your own.",
    version=f"graphsc {__version__}",
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_none",
)

VERBS = {
    "Start here": (demo.demo, about.info, about.methods, data.app),
    "Train and embed": (
        train.train,
        train.embed,
        pretrain.pretrain,
        pretrain.frozen,
        pretrain.pack,
        pretrain.models,
    ),
    "Predict properties of molecules": (finetune.finetune, finetune.predict, finetune.yardstick),
    "Look at embeddings": (report.explore, similarity.similar, similarity.outliers, similarity.cluster),
    "Evaluate and compare": (evaluate.evaluate, evaluate.compare, report.report, runs.runs),
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
    # Ctrl-C and SIGTERM end alike while parsing, importing and working.
    previous = {number: signal.signal(number, _on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    show_warning = warnings.showwarning
    warnings.showwarning = partial(_show_warning, show_warning)
    failed: OSError | None = None
    listed = os.environ.get(PLUGINS)
    try:
        app(_load_plugins([argument for argument in arguments if argument != "--debug"]))
        sys.stdout.flush()  # here, because Python would report a full disk only after the exit code is set
    except GraphscError as error:
        return _print_error(str(error), error.exit_code, debug)
    except CycloptsError as error:
        return _print_error(f"{str(error).rstrip('.')}; see graphsc --help", 2, debug)
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:
            failed = _output_error("\n")  # what could not be written may be lost, so this is written again
        if failed is None:  # a bug in GraphSC
            message = f"internal error: {type(error).__name__}: {error} (run with --debug for the traceback)"
            return _print_error(message, 1, debug)
    finally:
        failed = failed or _output_error()
        for number, handler in previous.items():
            signal.signal(number, handler)
        warnings.showwarning = show_warning
        if listed is None:
            os.environ.pop(PLUGINS, None)
        else:
            os.environ[PLUGINS] = listed
        if failed is not None:
            # Python would fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(failed, BrokenPipeError):  # the reader of our output, such as `head`, is gone
        return 141
    if failed is not None:
        return _print_error(f"cannot write to standard output: {failed.strerror}", 2, debug)
    return 0


def _load_plugins(arguments: list[str]) -> list[str]:
    """Load the plug-ins that `--plugin` names, list them for worker processes, and return what is left."""
    left: list[str] = []
    sources: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            left += [argument, *rest]
        elif argument == "--plugin" or argument.startswith("--plugin="):
            source = argument.partition("=")[2] or next(rest, "")
            if not source or source.startswith("-"):
                raise ConfigError("--plugin needs a Python file or a module")
            sources.append(os.path.abspath(source) if source.endswith(".py") else source)  # noqa: PTH100
        else:
            left.append(argument)
    if sources:
        os.environ[PLUGINS] = os.pathsep.join([*filter(None, [os.environ.get(PLUGINS)]), *sources])
    for source in sources:
        load_plugin(source)
    return left


def _output_error(text: str = "") -> OSError | None:
    """Why what was printed cannot be written, e.g. to a file on a full disk."""
    try:
        if text:  # standard output that is closed takes not even an empty one
            sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def _on_signal(number: int, _: object) -> None:
    sys.stderr.write("stopped\n")
    sys.exit(128 + number)


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
