# SPDX-License-Identifier: Apache-2.0
"""The arguments of commands that watch jobs of a cluster."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dtjob.cli.bad_input import BadInput
from dtjob.cli.commands.options import Context, JobName, Kubeconfig, Namespace, Task, connected
from dtjob.cli.work_directory import WORK_DIRECTORY


class Output(StrEnum):
    """How objects are printed."""

    TEXT = "text"
    JSON = "json"


Printed = Annotated[Output, typer.Option("--output", "-o", help="json: the objects in full.")]


def list_jobs(
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="The jobs of all namespaces.")] = False,
    output: Printed = Output.TEXT,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List jobs with phase, step and time left.

    Example: dtjob list -A
    """
    from dtjob.api.names import KIND
    from dtjob.cli.watching.listing import table

    cluster = connected(kubeconfig, context, namespace)
    jobs = cluster.list(KIND, everywhere=everywhere)
    if output is Output.JSON:
        typer.echo(json.dumps(jobs, indent=2))
    elif not jobs:
        typer.echo(f"no jobs in {'any namespace' if everywhere else f'namespace {cluster.namespace}'}", err=True)
    else:
        typer.echo("\n".join(table(jobs, with_namespace=everywhere)))


def status(
    job: JobName,
    output: Printed = Output.TEXT,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show the state of a job and the reason for it. Step, time left, checkpoint and last failure are shown too.

    Example: dtjob status digits
    """
    from dtjob.api.names import KIND
    from dtjob.cli.watching.words import status_lines

    found = connected(kubeconfig, context, namespace).get(KIND, job)
    typer.echo(json.dumps(found, indent=2) if output is Output.JSON else "\n".join(status_lines(found)))


def logs(
    job: JobName,
    task: Task = None,
    previous: Annotated[bool, typer.Option("--previous", help="Only of pods that were replaced.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, help="Only so many of the last lines of each pod.")] = None,
    work_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory of local runs. Default: .dtjob.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print the logs of all tasks, in the order of time. worker-1.2 is the third pod of worker-1.

    The log of a pod is deleted with it, and a failed pod is replaced. To see all attempts, follow from the start.

    If .dtjob in this directory has a local run of JOB, its logs are printed, one task after the other. With
    --namespace, --kubeconfig or --context, the logs of the cluster's job are printed.

    Example: dtjob logs digits --task worker-1 -f
    """
    from dtjob.api.names import KIND
    from dtjob.cli.watching import logs as reading
    from dtjob.cli.watching.follow import follow_job
    from dtjob.cli.watching.pods import in_order

    in_order([], task)
    if follow and (previous or tail is not None):
        raise BadInput("--follow: it prints everything, so it goes without --previous and --tail")
    if (run := _local_run(job, work_dir, namespace or kubeconfig or context)) is not None:
        raise typer.Exit(_local_logs(run, job, task, follow=follow, previous=previous, tail=tail))
    cluster = connected(kubeconfig, context, namespace)
    cluster.get(KIND, job)
    if follow:
        raise typer.Exit(follow_job(cluster, job, task))
    printer = reading.standard_output()
    if not reading.print_logs(cluster, job, printer, task, previous=previous, tail=tail):
        _say_that_there_are_none(task or job, previous=previous)


def _local_run(job: str, work_dir: Path | None, cluster: object) -> Path | None:
    """The directory of the local run whose logs are meant. None: those of a job of a cluster are.

    `cluster`: an option that names one. Raises BadInput if --work-dir has no such run.
    """
    from dtjob.cli.watching.local_logs import run_here

    if cluster:
        if work_dir is not None:
            raise BadInput("--work-dir: it is for local runs, so it goes without --namespace, --kubeconfig, --context")
        return None
    found = run_here(work_dir or WORK_DIRECTORY, job)
    if found is None and work_dir is not None:
        raise BadInput(f"--work-dir: {work_dir} has no run of {job}")
    if found is not None and work_dir is None:
        typer.echo(f"logs of the local run {found}; with -n NAMESPACE, of the job in a cluster", err=True)
    return found


def _local_logs(run: Path, job: str, task: str | None, *, follow: bool, previous: bool, tail: int | None) -> int:
    """Print the logs of a local run. Returns the exit code."""
    from dtjob.cli.watching import local_logs
    from dtjob.cli.watching.logs import standard_output

    if follow:
        return local_logs.follow(run, job, standard_output(), task)
    if not local_logs.print_logs(run, job, standard_output(), task, previous=previous, tail=tail):
        _say_that_there_are_none(task or job, previous=previous)
    return 0


def _say_that_there_are_none(what: str, *, previous: bool) -> None:
    pod = "pod that was replaced" if previous else "pod"
    typer.echo(f"no {pod} of {what} has a log", err=True)


def wait(
    job: JobName,
    wanted: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="STATE",
            help="End (a good one), Running, Suspended, Complete, Failed, FirstStep, Checkpoint or Deleted.",
        ),
    ] = "End",
    timeout: Annotated[str | None, typer.Option(metavar="TIME", help="90s, 15m or 1h30m. Left out: no limit.")] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Wait for a job. Exit code 0: the condition holds. 1: the job ended otherwise. 124: the time is up.

    Example: dtjob wait digits --timeout 2h && echo trained
    """
    from dtjob.cli.watching import wait as waiting

    word, seconds = waiting.check_wanted(wanted), None if timeout is None else waiting.seconds_of(timeout)
    code, phase = waiting.wait(connected(kubeconfig, context, namespace), job, word, seconds)
    typer.echo(f"{job}: {phase}", err=bool(code))
    raise typer.Exit(code)


def events(job: JobName, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Print the events of a job and its pods, the newest last.

    Example: dtjob events digits
    """
    from dtjob.api.names import KIND
    from dtjob.cli.watching.events import lines, of_job

    cluster = connected(kubeconfig, context, namespace)
    found = of_job(cluster.list("Event"), cluster.get(KIND, job))
    if not found:
        typer.echo(f"no events of {job}; a cluster keeps them for an hour", err=True)
    else:
        typer.echo("\n".join(lines(found)))


def top(job: JobName, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Show a job while it trains. On a terminal it is a live view, else a line for each change. It ends with the job.

    Example: dtjob top digits
    """
    from dtjob.cli.watching.top import top as show

    raise typer.Exit(show(connected(kubeconfig, context, namespace), job, sys.stdout))
