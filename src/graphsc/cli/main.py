"""`graphsc`: one command with verbs, one line for every error, and an exit code that means something."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from graphsc import __version__
from graphsc.cli import about, data, demo, train
from graphsc.core.errors import GraphscError

app = typer.Typer(
    name="graphsc",
    help="One good vector a graph, learned without labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")
app.command("train")(train.train)
app.command("embed")(train.embed)
app.command("methods")(about.methods)
app.command("info")(about.info)
app.command("demo")(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphsc {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", envvar="GRAPHSC_DEBUG")
    ] = False,
) -> None:
    """One good vector a graph, learned without labels."""
    if debug:
        os.environ["GRAPHSC_DEBUG"] = "1"


def main() -> None:
    """Entry point: run the verb, turn any error into one line on stderr."""
    # Left alone, Ctrl-C would be turned into another exit code on its way through the parser.
    before = signal.signal(signal.SIGINT, _interrupted)
    try:
        app()
    except GraphscError as error:
        _report(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:  # the last line of defence: a bug of ours, still one line
        _report(f"internal error: {type(error).__name__}: {error} (run with --debug for the traceback)")
        sys.exit(1)
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupted(*_: object) -> None:
    sys.stderr.write("stopped\n")
    sys.exit(130)


def _report(sentence: str) -> None:
    if os.environ.get("GRAPHSC_DEBUG"):
        import traceback

        traceback.print_exc()
    sys.stderr.write(f"error: {' '.join(sentence.split())}\n")
