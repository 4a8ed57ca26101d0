# SPDX-License-Identifier: Apache-2.0
"""The arguments of commands that change jobs of a cluster."""

from typing import Annotated, Literal

import typer

from dtjob.api.words import counted
from dtjob.bad_input import BadInput
from dtjob.cli.commands.options import Context, JobName, Kubeconfig, Namespace, Task, connected


def suspend(job: JobName, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Save a checkpoint of a job and delete its pods. dtjob resume continues it.

    Example: dtjob suspend digits
    """
    from dtjob.client.verbs import steering

    steering.suspend(connected(kubeconfig, context, namespace), job)
    typer.echo(f"the pods of {job} are told to save and to end; dtjob resume {job} continues it")


def resume(job: JobName, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Continue a suspended job at its last checkpoint.

    Example: dtjob resume digits
    """
    from dtjob.client.verbs import steering

    steering.resume(connected(kubeconfig, context, namespace), job)
    typer.echo(f"{job} continues at its last checkpoint")


def scale(
    job: JobName,
    workers: Annotated[int | None, typer.Argument(min=1, metavar="N", help="Number of workers.")] = None,
    role: Annotated[Literal["worker", "data"], typer.Option(help="Whose number changes.")] = "worker",
    replicas: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The same number, as kubectl scale takes it.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Change the number of workers or of data workers.

    Example: dtjob scale digits 4
    """
    from dtjob.api.spec.replica_specs import Role
    from dtjob.client.verbs import steering

    number = workers if replicas is None else replicas
    if number is None or workers not in (None, number):
        raise BadInput("scale: give one number of workers: dtjob scale JOB N, or --replicas N")
    steering.scale(connected(kubeconfig, context, namespace), job, number, Role(role))
    does, whom = ("saves and continues", "worker") if role == "worker" else ("goes on", "data worker")
    typer.echo(f"{job} {does} with {counted(number, whom)}")


def restart(
    job: JobName, task: Task = None, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Save a job and replace its pods, or the pod of one task.

    Example: dtjob restart digits
    """
    from dtjob.client.verbs import steering

    cluster = connected(kubeconfig, context, namespace)
    if task is not None:
        pods = steering.replace_task(cluster, job, task)
        typer.echo(f"{job}: {', '.join(pods)} deleted; the operator replaces it")
        return
    steering.restart(cluster, job)
    typer.echo(f"the pods of {job} have ended; it starts again at its last checkpoint")


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
    from dtjob.client.errors import Refused
    from dtjob.client.verbs import steering

    cluster, refused = connected(kubeconfig, context, namespace), list[Refused]()
    for job in jobs:
        try:
            steering.delete(cluster, job, 600.0 if wait else None)
            typer.echo(f"{job} is deleted")
        except Refused as error:  # such as one that is not there; the others are deleted
            refused.append(error)
    for one in refused[:-1]:
        typer.echo(f"dtjob: {one}", err=True)
    if refused:
        raise refused[-1]
