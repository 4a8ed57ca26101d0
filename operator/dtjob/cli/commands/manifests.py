# SPDX-License-Identifier: Apache-2.0
"""The arguments of commands that read manifests and need no cluster."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ManifestOutput(StrEnum):
    """How a manifest is printed."""

    YAML = "yaml"
    JSON = "json"


class Verdicts(StrEnum):
    """How `dtjob validate` answers."""

    TEXT = "text"
    JSON = "json"


def validate(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Manifests: files, folders, or - for standard input.")
    ],
    output: Annotated[
        Verdicts, typer.Option("--output", "-o", help="Form of the output. json: each verdict as an object.")
    ] = Verdicts.TEXT,
) -> None:
    """Check manifests as the API server would, without one. A file may hold several jobs, and objects of other kinds.

    Examples:
        dtjob validate jobs/
        cat job.yaml | dtjob validate -
    """
    from dtjob.cli.validate import as_json, verdicts

    if output is Verdicts.JSON:
        text, right = as_json(files)
        sys.stdout.write(text)
        raise typer.Exit(0 if right else 2)
    for verdict in verdicts(files):
        typer.echo(verdict.line)
        for warning in verdict.warnings:
            typer.echo(f"warning: {verdict.where}: {warning}", err=True)


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder for the files.", show_default="this folder")
    ] = Path(),
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the job.")] = "first",
) -> None:
    """Write a first script and the manifest of its job.

    Example: dtjob init demo && cd demo && dtjob run job.yaml
    """
    from dtjob.cli.first_job import write

    for file in write(directory, name):
        typer.echo(f"{file} is written")


def convert(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="TFJobs: files, folders, or - for standard input.")
    ],
    output: Annotated[ManifestOutput, typer.Option("--output", "-o", help="Form of the output.")] = ManifestOutput.YAML,
    program: Annotated[
        bool,
        typer.Option("--program", help="Run `python script.py` with dtjob's trainer, which saves and resumes."),
    ] = False,
) -> None:
    """Convert TFJobs to dtjobs.

    Standard error has a line for each field that is dropped or changes its meaning. Exit code 0: nothing of meaning is
    lost. 1: there are warnings. 2: a TFJob cannot be converted, and nothing is printed.

    Example: dtjob convert tfjob.yaml | kubectl apply --server-side -f -
    """
    from dtjob.cli.convert.command import answer

    found = answer(files, program=program, as_json=output is ManifestOutput.JSON)
    for line in found.lines:
        typer.echo(line, err=True)
    sys.stdout.write(found.output)
    sys.stdout.flush()
    raise typer.Exit(found.code)
