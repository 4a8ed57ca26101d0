# SPDX-License-Identifier: Apache-2.0
"""The arguments of commands that read manifests."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dtjob.cli.commands.default_options import (
    DefaultGangProvider,
    DefaultImage,
    DefaultPod,
    DefaultPodLabels,
    defaults,
    defaults_of_cluster,
)
from dtjob.cli.commands.options import Context, Kubeconfig, Namespace, Output, connected


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
        bool, typer.Option("--program", help="Run `python script.py` with dtjob's trainer, which saves and resumes.")
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


def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The manifest of a job.")],
    output: Annotated[
        Output, typer.Option("--output", "-o", help="Form of the output. yaml: the objects in full. json: everything.")
    ] = Output.TEXT,
    default_image: DefaultImage = None,
    default_pod_label: DefaultPodLabels = None,
    default_pod: DefaultPod = None,
    default_gang_provider: DefaultGangProvider = None,
    of_cluster: Annotated[
        bool, typer.Option("--cluster", help="Use the namespace and the operator's defaults of the cluster.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what a job becomes in a cluster. It shows tasks, hosts, TF_CONFIG, failure rules and objects.

    Examples:
        dtjob explain job.yaml
        dtjob explain job.yaml --cluster -n team
    """
    from dtjob.cli.explain import explanation as explaining
    from dtjob.manifests.job_file import read_job

    render = {Output.TEXT: explaining.as_text, Output.YAML: explaining.as_yaml, Output.JSON: explaining.as_json}
    given = defaults(default_image, default_pod_label, default_gang_provider, default_pod)
    job = read_job(file)
    if of_cluster:
        found = connected(kubeconfig, context, namespace)
        given, said = defaults_of_cluster(found)
        if "namespace" not in job.metadata.model_fields_set:
            job.metadata.namespace = found.namespace
        if said:
            typer.echo(f"note: {said}", err=True)
    # Piece by piece: with each task's TF_CONFIG, which has all addresses, the whole is half a GB for 4,000 workers.
    sys.stdout.writelines(render[output](job, given))
    sys.stdout.flush()
