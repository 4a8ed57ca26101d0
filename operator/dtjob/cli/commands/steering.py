# SPDX-License-Identifier: Apache-2.0
"""The arguments of commands that change jobs of a cluster, or bring something out of them."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dtjob.api.names import KIND
from dtjob.cli.commands.options import Context, JobName, Kubeconfig, Namespace, Task, connected

HelperImage = Annotated[
    str | None, typer.Option("--image", metavar="IMAGE", help="Of the pod that reads the files. Left out: the job's.")
]


def suspend(job: JobName, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Save a checkpoint of a job and delete its pods. dtjob resume continues it.

    Example: dtjob suspend digits
    """
    from dtjob.cli.steering import changes

    typer.echo(changes.suspend(connected(kubeconfig, context, namespace), job))


def resume(job: JobName, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Continue a suspended job at its last checkpoint.

    Example: dtjob resume digits
    """
    from dtjob.cli.steering import changes

    typer.echo(changes.resume(connected(kubeconfig, context, namespace), job))


def scale(
    job: JobName,
    workers: Annotated[int, typer.Argument(min=1, metavar="WORKERS", help="Number of workers.")],
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Change the number of workers of a job with elasticPolicy.

    Example: dtjob scale digits 4
    """
    from dtjob.cli.steering import changes

    typer.echo(changes.scale(connected(kubeconfig, context, namespace), job, workers))


def restart(
    job: JobName,
    task: Task = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Save a job and replace its pods, or the pod of one task.

    Example: dtjob restart digits
    """
    from dtjob.cli.steering import changes

    typer.echo(changes.restart(connected(kubeconfig, context, namespace), job, task))


def delete(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Names of jobs.")],
    wait: Annotated[bool, typer.Option("--wait", help="Until the job and its pods are gone.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Delete jobs with their pods and submitted files. Checkpoints stay.

    Example: dtjob delete digits
    """
    from dtjob.cli.steering import changes

    cluster = connected(kubeconfig, context, namespace)
    for job in jobs:
        typer.echo(changes.delete(cluster, job, 600.0 if wait else None))


def fetch(
    job: JobName,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Files, or checkpoints, events or all. Left out: the models."),
    ] = None,
    directory: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go.")] = Path(),
    list_files: Annotated[bool, typer.Option("--list", help="Print the files and their sizes.")] = False,
    image: HelperImage = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Copy models, checkpoints or events of a job to this machine. The job may have ended.

    A pod reads them, with the rights of the chief. It is deleted afterwards.

    Example: dtjob fetch digits model.keras -o out
    """
    cluster = connected(kubeconfig, context, namespace)
    cluster.get(KIND, job)
    _say_it_looks(job)  # before imports that take half a second
    from dtjob.cli.steering import fetch as fetching

    if list_files:
        for name, size in fetching.listed(cluster, job, image).items():
            typer.echo(f"{size:>12}  {name}")
    else:
        fetching.fetch(cluster, job, paths or [], directory, typer.echo, image)


def tensorboard(
    job: JobName,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of this machine; 0: a free one.")] = 6006,
    image: HelperImage = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Run TensorBoard on the checkpoints of a job, until Ctrl-C. A local port is forwarded to its pod.

    A profile is shown only if the image has the package xprof, which dtjob's image lacks.

    Example: dtjob tensorboard digits
    """
    cluster = connected(kubeconfig, context, namespace)
    from dtjob.cli.steering.tensorboard import show

    try:
        show(cluster, job, port, partial(_say_it_looks, job), typer.echo, image)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def debug_bundle(
    job: JobName,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Left out: JOB-debug.tar.gz.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Collect what explains a job in an archive. It has objects, events, logs and metrics.

    Values that look like secrets are removed.

    Example: dtjob debug-bundle digits
    """
    cluster = connected(kubeconfig, context, namespace)
    from dtjob.cli.steering.bundle import collect

    file = output or Path(f"{job}-debug.tar.gz")
    names = collect(cluster, job, file, partial(typer.echo, err=True))
    typer.echo(f"{file}: {len(names)} files; look at them before you send them to anybody")


def _say_it_looks(job: str) -> None:
    typer.echo(f"{job}: looking for its checkpoints", err=True)
