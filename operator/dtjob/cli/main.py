# SPDX-License-Identifier: Apache-2.0
"""The command line: finds the command and its file in `commands/`. Imports are late, so that each begins quickly."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from dtjob import __version__
from dtjob.bad_input import BadInput
from dtjob.cli.commands.shown import Command, Group
from dtjob.client.errors import TEMPORARY, BadName, ClientError, NoCluster, Refused, TimedOut

GROUPS = {
    "This machine": {
        "init": "manifests.init",
        "run": "running.run",
        **{name: f"manifests.{name}" for name in ("validate", "convert", "explain")},
    },
    "Jobs": {
        "submit": "submitting.submit",
        "list": "watching.list_jobs",
        **{name: f"watching.{name}" for name in ("status", "logs", "events", "top", "ui", "wait")},
        **{name: f"steering.{name}" for name in ("suspend", "resume", "scale", "restart", "delete")},
        **{name: f"bringing.{name}" for name in ("fetch", "tensorboard")},
        "exec": "bringing.run_in_pod",
        "debug-bundle": "bringing.debug_bundle",
    },
    "Cluster": {name: f"cluster.{name}" for name in ("doctor", "operator", "version")},
}
"""Each command with its module in `commands/` and its function, under its title in the help."""
COMMANDS = {name: place for group in GROUPS.values() for name, place in group.items()}
ALIASES = {"get": "list", "ls": "list", "describe": "status"}
"""Names that users of kubectl and of a shell type."""
NOT_DONE, BAD_INPUT, REFUSED, NOT_REACHED, TIME_IS_UP, INTERRUPTED = 1, 2, 3, 4, 124, 130
"""Exit codes. tools/reference/pages.py explains them to users."""
CODES = {TEMPORARY: NOT_REACHED, (Refused,): REFUSED, (TimedOut,): TIME_IS_UP, (NoCluster, BadName): BAD_INPUT}
"""A script tells an outage, a refusal and a mistake of its own apart."""
PLUGIN = "kubectl-dtjob"
"""The name of this program as a plugin of kubectl."""


def app(*names: str) -> typer.Typer:
    """The command line with these commands, by default with all. One command is ready sooner than all."""
    made = typer.Typer(
        name="dtjob",
        cls=Group,
        suggest_commands=False,  # `usage.py` does, and leaves hidden ones out
        help="Distributed TensorFlow training: one manifest, on this machine or on Kubernetes.",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # without it, --help imports rich, which takes longer than all the rest
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_options)
    for name in names or (*COMMANDS, *ALIASES):
        command = ALIASES.get(name, name)
        module, function = COMMANDS[command].split(".")
        found = getattr(import_module(f"dtjob.cli.commands.{module}"), function)
        title = next(title for title, group in GROUPS.items() if command in group)
        made.command(name, cls=Command, hidden=name in ALIASES, rich_help_panel=title)(found)
    return made


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dtjob {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that go before a command."""


def _open_what_is_closed() -> None:
    """Give a program without standard input, output or error (`>&-`) an empty one. What the encoding of its output
    lacks is escaped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 (until the program ends)
        if mode == "w":
            getattr(sys, name).reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command line. What goes wrong is one clear sentence on standard error, with its exit code."""
    _open_what_is_closed()
    if sys.argv[1:2] not in (["run"], ["operator"]):  # the programs of a user inherit the environment of these two
        os.environ["PYDANTIC_DISABLE_PLUGINS"] = "1"  # to look for plugins, pydantic reads all installed packages
    try:
        command_line = app(*(name for name in sys.argv[1:2] if name in (*COMMANDS, *ALIASES)))
        program = "kubectl dtjob" if Path(sys.argv[0]).name == PLUGIN else "dtjob"
        sys.exit(command_line(sys.argv[1:] or ["--help"], prog_name=program, standalone_mode=False))
    except typer.TyperException as error:  # of the parser
        from dtjob.cli.commands.usage import said_of

        print(f"dtjob: {said_of(error, sys.argv[1:])}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except BadInput as error:
        for line in error.lines:
            print(f"dtjob: {line}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except ClientError as error:
        print(f"dtjob: {error}", file=sys.stderr)
        sys.exit(next((code for kinds, code in CODES.items() if isinstance(error, kinds)), NOT_DONE))
    except KeyboardInterrupt:  # before a command has begun
        sys.exit(INTERRUPTED)
    except OSError as error:  # a file of the user, or where the output goes, whichever command it was
        if sys.argv[1:2] == ["operator"]:  # its log needs the place
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"dtjob: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
