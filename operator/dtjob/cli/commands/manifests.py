"""The arguments of commands that read manifests and need no cluster."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ManifestOutput(StrEnum):
    """How a manifest is printed."""

    YAML = "yaml"
    JSON = "json"


def convert(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="TFJobs: files, folders, or - for stdin.")],
    output: Annotated[ManifestOutput, typer.Option("--output", "-o", help="yaml, or json.")] = ManifestOutput.YAML,
    program: Annotated[
        bool,
        typer.Option("--program", help="Run `python script.py` with dtjob's trainer, which saves and resumes."),
    ] = False,
) -> None:
    """Convert TFJobs of kubeflow.org/v1 to dtjobs.

    Standard error has a line for each field that is dropped or changes its meaning. Exit code 0: nothing of meaning is
    lost. 1: there are warnings. 2: a TFJob cannot be converted, and nothing is printed.

    Example: dtjob convert tfjob.yaml | kubectl apply -f -
    """
    from dtjob.cli.convert.command import answer

    found = answer(files, program=program, as_json=output is ManifestOutput.JSON)
    for line in found.lines:
        typer.echo(line, err=True)
    sys.stdout.write(found.output)
    sys.stdout.flush()
    raise typer.Exit(found.code)
