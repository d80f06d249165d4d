"""The `casemate` command: one edge where every error becomes a line and an exit code.

Exit codes: 0 done and clean · 1 done, something found · 2 incomplete · 3 error, usage errors included.
"""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from casemate import __version__
from casemate.cli.loader import LazyVerbs
from casemate.errors import CasemateError
from casemate.report.visible import visible

_ERROR = 3
_INTERRUPTED = 130

app = typer.Typer(
    cls=LazyVerbs,
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"casemate {__version__}")
        raise typer.Exit


@app.callback()
def casemate(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback where something unforeseen happens.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A private security analyst on your own machine."""


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code."""
    sys.exit(_exit_code(sys.argv[1:] if arguments is None else arguments))


def _exit_code(arguments: list[str]) -> int:
    try:
        return typer.main.get_command(app).main(arguments, prog_name="casemate", standalone_mode=False) or 0
    except typer.TyperException as error:
        typer.echo(error.format_message() if len(arguments) == 0 else f"casemate: {error.format_message()}", err=True)
    except CasemateError as error:
        typer.echo(f"casemate: {visible(str(error))}", err=True)
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except Exception as error:  # the edge: nothing unforeseen may show a traceback unasked
        if "--debug" in arguments:
            raise
        kind = type(error).__name__
        typer.echo(
            f"casemate: unforeseen {kind}: {visible(str(error))} (please report it; --debug shows where)", err=True
        )
    return _ERROR
