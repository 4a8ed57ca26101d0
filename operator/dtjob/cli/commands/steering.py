# SPDX-License-Identifier: Apache-2.0
"""The arguments of commands that change jobs of a cluster."""

from typing import Annotated

import typer

from dtjob.cli.bad_input import BadInput
from dtjob.cli.commands.options import Context, JobName, Kubeconfig, Namespace, Task, connected


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
    workers: Annotated[int | None, typer.Argument(min=1, metavar="N", help="Number of workers.")] = None,
    replicas: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The same number, as kubectl scale takes it.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Change the number of workers of a job with elasticPolicy.

    Example: dtjob scale digits 4
    """
    from dtjob.cli.steering import changes

    number = workers if replicas is None else replicas
    if number is None or workers not in (None, number):
        raise BadInput("scale: give one number of workers: dtjob scale JOB N, or --replicas N")
    typer.echo(changes.scale(connected(kubeconfig, context, namespace), job, number))


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
    jobs: Annotated[list[str], typer.Argument(metavar="JOB…", help="Names of jobs.")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the jobs and their pods are gone. Default: do not wait.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Delete jobs with their pods and submitted files. Checkpoints stay, unless retention is Delete.

    The pods end after the command, unless it waits.

    Example: dtjob delete digits
    """
    from dtjob.cli.steering import changes

    cluster = connected(kubeconfig, context, namespace)
    for job in jobs:
        typer.echo(changes.delete(cluster, job, 600.0 if wait else None))
