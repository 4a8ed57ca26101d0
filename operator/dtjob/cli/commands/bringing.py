# SPDX-License-Identifier: Apache-2.0
"""The arguments of commands that bring something out of a job's pods, or run something in them."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dtjob.api.names import KIND
from dtjob.bad_input import BadInput
from dtjob.cli.commands.options import Context, JobName, Kubeconfig, Namespace, connected

HelperImage = Annotated[
    str | None,
    typer.Option("--image", metavar="IMAGE", help="Image of the pod that reads the files. Default: the job's."),
]


def fetch(
    job: JobName,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH…", help="Files, or checkpoints, events, logs or all. Default: the models."),
    ] = None,
    directory: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the files.", show_default="this folder")
    ] = Path(),
    list_files: Annotated[bool, typer.Option("--list", help="Print the files and their sizes.")] = False,
    image: HelperImage = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Copy models, checkpoints, events or logs of a job here. The job may have ended.

    A pod reads them, with the rights of the chief. It is deleted afterwards.

    Example: dtjob fetch digits model.keras -o out
    """
    cluster = connected(kubeconfig, context, namespace)
    cluster.get(KIND, job)
    _say_it_looks(job)  # before imports that take half a second
    from dtjob.client.verbs import fetch as fetching

    if list_files:
        for name, size in fetching.listed(cluster, job, image).items():
            typer.echo(f"{size:>12}  {name}")
    else:
        for file in fetching.fetch(cluster, job, paths or [], directory, image):
            typer.echo(str(file))


def tensorboard(
    job: JobName,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port of this machine. 0: a free one.")
    ] = 6006,
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
    from dtjob.cli.tensorboard import show

    try:
        show(cluster, job, port, partial(_say_it_looks, job), typer.echo, image)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def run_in_pod(
    job: JobName,
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND…", help="Command with its arguments.")],
    task: Annotated[
        str | None, typer.Option(metavar="TASK", help="Task, such as worker-1. Default: the chief, or worker-0.")
    ] = None,
    container: Annotated[
        str | None,
        typer.Option("--container", "-c", metavar="NAME", help="Container. Default: the training container."),
    ] = None,
    stdin: Annotated[bool, typer.Option("--stdin", "-i", help="Pass standard input to the command.")] = False,
    tty: Annotated[bool, typer.Option("--tty", "-t", help="Give the command a terminal.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Run a command in a pod of a job. The exit code is that of the command.

    Examples:
        dtjob exec digits -- nvidia-smi
        dtjob exec digits --task worker-1 -it -- bash
    """
    if tty and not (stdin and sys.stdin.isatty()):
        raise BadInput("--tty: it needs --stdin and a terminal as standard input; leave it out")
    from dtjob.client.exec import run_in_task

    cluster = connected(kubeconfig, context, namespace)
    try:
        raise typer.Exit(run_in_task(cluster, job, task, container, command, stdin=stdin, tty=tty))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def debug_bundle(
    job: JobName,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The archive. Default: JOB-debug.tar.gz.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Collect what explains a job in an archive. It has objects, events, logs and metrics.

    Values of variables, arguments and annotations are removed but for known ones, such as TF_CONFIG.

    Example: dtjob debug-bundle digits
    """
    cluster = connected(kubeconfig, context, namespace)
    from dtjob.cli.bundle import collect

    file = output or Path(f"{job}-debug.tar.gz")
    names = collect(cluster, job, file, partial(typer.echo, err=True))
    typer.echo(f"{file}: {len(names)} files; look at them before you send them to anybody")


def _say_it_looks(job: str) -> None:
    typer.echo(f"{job}: looking for its checkpoints", err=True)
