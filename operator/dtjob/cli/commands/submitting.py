# SPDX-License-Identifier: Apache-2.0
"""The arguments of `dtjob submit`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtjob.bad_input import BadInput
from dtjob.cli.commands import options
from dtjob.cli.commands.manifests import ManifestOutput
from dtjob.manifests.script import Submission

if TYPE_CHECKING:
    from dtjob.client.cluster import Cluster


def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Python script, or the manifest of a job.")],
    arguments: options.Arguments = None,
    strategy: options.Strategy = None,
    workers: options.Workers = None,
    ps: options.ParameterServers = None,
    evaluator: options.Evaluator = False,
    gpus: options.Gpus = None,
    cpu: options.Cpu = None,
    memory: options.Memory = None,
    env: options.Variables = None,
    env_from_secret: options.Secrets = None,
    mount: options.Mounts = None,
    image: Annotated[
        str | None,
        typer.Option(metavar="IMAGE", help="dtjob's trainer image, or one built on it. Default: that of the operator."),
    ] = None,
    claim: Annotated[
        str | None, typer.Option(metavar="NAME", help="PersistentVolumeClaim for the checkpoints.")
    ] = None,
    claim_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Create a PersistentVolumeClaim of this size for the checkpoints: 10Gi."),
    ] = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="URI", help="Bucket for the checkpoints: gs://…")] = None,
    source: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to send, without what its .dtjobignore names. Default: only FILE."),
    ] = None,
    requirements: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Requirements that pip installs before the program starts.")
    ] = None,
    name: options.Name = None,
    settings: options.Settings = None,
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="LocalQueue of Kueue.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the objects, and create nothing.")] = False,
    output: Annotated[
        ManifestOutput, typer.Option("--output", "-o", help="Form of the objects, with --dry-run.")
    ] = ManifestOutput.YAML,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show the logs until the job ends.")] = False,
    namespace: options.Namespace = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Train a script of this machine in a cluster. It is sent in a ConfigMap, which the job owns.

    Example: dtjob submit train.py --workers 8 --gpus 1 --memory 16Gi --claim-size 10Gi -f -- --epochs=5
    """
    from dtjob.manifests.script import Script

    script = Script(
        file,
        tuple(arguments or ()),
        *(strategy, workers, ps, evaluator, checkpoint, gpus, name),
        cpu=cpu,
        memory=memory,
        env=tuple(env or ()),
        secrets=tuple(env_from_secret or ()),
        mounts=tuple(mount or ()),
        settings=tuple(settings or ()),
    )
    submission = Submission(script, source, requirements, image, claim, queue, namespace, claim_size)
    _submit(submission, output if dry_run else None, follow, lambda: options.connected(kubeconfig, context, namespace))


def _submit(
    submission: Submission, printed: ManifestOutput | None, follow: bool, connect: "Callable[[], Cluster]"
) -> None:
    """Create the objects, or print them in this form."""
    from dtjob.manifests.script import Script, is_script

    file = submission.script.file
    if not is_script(file):
        if submission != Submission(Script(file), namespace=submission.namespace) or printed:
            raise BadInput(f"{file}: options of a script go with a .py file; write them in the manifest instead")
        from dtjob.client.verbs.submit import create, of_namespace
        from dtjob.manifests.job_file import checked, read_only_job
        from dtjob.manifests.warnings import warnings_of  # with these, 0.05 s that a script does not need

        cluster, written = connect(), read_only_job(file)
        warnings = warnings_of(checked(written, str(file)), written)
        cluster = of_namespace(cluster, written, submission.namespace)
        job = create(cluster, written)
        _warn(warnings)
    else:
        from dtjob.manifests import submitted

        one = submitted.made(submission)
        if printed:
            sys.stdout.write(submitted.printed(one, as_json=printed is ManifestOutput.JSON))
            _warn(one.warnings)
            return
        from dtjob.client.verbs.submit import submit as send

        cluster = connect()
        job = send(cluster, one)
        _warn(one.warnings)
    typer.echo(f"{job['metadata']['name']} is submitted to namespace {cluster.namespace}")
    if follow:
        from dtjob.cli.watching.printer import follow_job

        raise typer.Exit(follow_job(cluster, job["metadata"]["name"]))


def _warn(warnings: list[str]) -> None:
    """Say what the job may not be meant to do, once nothing is wrong with it."""
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
