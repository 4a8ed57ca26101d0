# SPDX-License-Identifier: Apache-2.0
"""The arguments of commands that watch jobs of a cluster."""

import sys
import threading
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtjob.bad_input import BadInput
from dtjob.cli.commands.options import Context, JobName, Kubeconfig, Namespace, Output, Task, connected, seconds_of
from dtjob.local import WORK_DIRECTORY

if TYPE_CHECKING:
    from dtjob.client.verbs.logs import How

WorkDir = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of local runs. Default: .dtjob.")]


class ListOutput(StrEnum):
    """How jobs are printed."""

    TEXT = "text"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"


def list_jobs(
    jobs: Annotated[list[str] | None, typer.Argument(metavar="JOB…", help="Names of jobs. Default: all jobs.")] = None,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the jobs of all namespaces.")
    ] = False,
    selector: Annotated[
        str, typer.Option("--selector", "-l", metavar="LABELS", help="Labels of the jobs, such as team=vision.")
    ] = "",
    output: Annotated[
        ListOutput, typer.Option("--output", "-o", help="Form of the output. wide: more columns. name: names only.")
    ] = ListOutput.TEXT,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Print a line for each change, until Ctrl-C.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List jobs with phase, step and time left. Aliases: get, ls.

    Examples:
        dtjob list -A -o wide
        dtjob list -l team=vision --watch
    """
    from dtjob.api.names import KIND
    from dtjob.cli.watching.listing import Form, name_of, table, watched

    as_table = output in (ListOutput.TEXT, ListOutput.WIDE)
    if jobs and (everywhere or selector or watch):
        raise BadInput("list: names of jobs go without --all-namespaces, --selector and --watch")
    if watch and not as_table:
        raise BadInput(f"--watch: it prints a table, so it goes without -o {output.value}")
    cluster, form = connected(kubeconfig, context, namespace), Form(everywhere, output is ListOutput.WIDE)
    if watch:
        try:
            for line in watched(cluster, form, selector, everywhere=everywhere):
                typer.echo(line)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
    found = [cluster.get(KIND, name) for name in jobs] if jobs else cluster.list(KIND, selector, everywhere=everywhere)
    if not as_table and output is not ListOutput.NAME:
        one = found[0] if jobs and len(jobs) == 1 else {"apiVersion": "v1", "kind": "List", "items": found}
        _print(one, as_json=output is ListOutput.JSON)
    elif not found:
        typer.echo(f"no jobs in {'any namespace' if everywhere else f'namespace {cluster.namespace}'}", err=True)
    else:
        typer.echo("\n".join(map(name_of, found) if output is ListOutput.NAME else table(found, form)))


def status(
    job: JobName,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="Form of the output. json, yaml: the object in full.")
    ] = Output.TEXT,
    work_dir: WorkDir = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show the state of a job and the reason for it. Alias: describe.

    Step, time left, checkpoint and last failure are shown too, and the latest interruptions of training. If .dtjob in
    this directory has a local run of JOB, that run is shown, unless an option names a cluster.

    Example: dtjob status digits
    """
    from dtjob.api.names import KIND
    from dtjob.client.verbs.words import status_lines

    if (run := _local_run(job, work_dir, namespace or kubeconfig or context, "status")) is not None:
        from dtjob.local.runs import as_object

        found = as_object(run)
    else:
        found = connected(kubeconfig, context, namespace).get(KIND, job)
    if output is Output.TEXT:
        typer.echo("\n".join(status_lines(found)))
    else:
        _print(found, as_json=output is Output.JSON)


def _print(value: Any, *, as_json: bool) -> None:
    """Print an object in full."""
    from dtjob.manifests.manifest_yaml import printed

    typer.echo(printed([value], as_json=as_json), nl=False)


def logs(
    job: JobName,
    task: Task = None,
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="Only pods that were replaced and are still there.")
    ] = False,
    attempt: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Only the pods with this number at their ends, from 0.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the logs until the job ends.")] = False,
    tail: Annotated[
        int | None, typer.Option(min=0, max=2**31 - 1, metavar="N", help="Last lines of each pod. Default: all.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only lines of this last time, such as 90s, 15m or 1h30m.")
    ] = None,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Begin each line with its time.")] = False,
    work_dir: WorkDir = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print the logs of all tasks, in the order of time. worker-1.2 is the third pod of worker-1.

    The log of a pod is deleted with it, and a failed pod is replaced. To see all attempts, follow from the start. The
    chief task keeps its log and the last lines of other tasks beside the checkpoints. If pods are gone, --attempt
    reads them there, with a pod of its own.

    If .dtjob in this directory has a local run of JOB, its logs are printed, one task after the other. With
    --namespace, --kubeconfig or --context, the logs of the cluster's job are printed.

    Examples:
        dtjob logs digits --task worker-1 -f
        dtjob logs digits --since 15m --timestamps
        dtjob logs digits --attempt 0 --task worker-1
    """
    from dtjob.api.names import KIND
    from dtjob.cli.watching.printer import Printer, follow_job
    from dtjob.client.verbs.logs import How
    from dtjob.client.verbs.logs import logs as lines_of
    from dtjob.client.verbs.pods import check_task

    check_task(task)
    how = How(previous, attempt, tail, None if since is None else seconds_of(since, "--since"))
    if follow and previous:
        raise BadInput("--follow: pods that were replaced print nothing more, so it goes without --previous")
    if attempt is not None and (follow or previous or since is not None or timestamps):
        raise BadInput("--attempt: it goes without --follow, --previous, --since and --timestamps")
    if (run := _local_run(job, work_dir, namespace or kubeconfig or context, "logs")) is not None:
        if since is not None or timestamps:
            raise BadInput("logs: lines of a local run have no times; leave out --since and --timestamps")
        if follow and tail is not None:
            raise BadInput("--follow: it prints all lines of a local run; leave out --tail")
        raise typer.Exit(_local_logs(run, job, task, how, follow=follow))
    cluster = connected(kubeconfig, context, namespace)
    cluster.get(KIND, job)
    if follow:
        raise typer.Exit(follow_job(cluster, job, task, how, timestamps=timestamps))
    printer, line = Printer(), None
    if attempt is None:
        found = lines_of(cluster, job, task, how)
    else:
        from dtjob.client.verbs.kept_logs import logs_of_attempt

        found = logs_of_attempt(cluster, job, attempt, task, tail)
    for line in found:
        printer.logged(line, timestamps=timestamps)
    if line is None:
        _say_that_there_are_none(task or job, previous=previous)


def _local_run(job: str, work_dir: Path | None, cluster: object, what: str) -> Path | None:
    """The directory of the local run to read. None: the logs, or `what` else, are those of a job in a cluster.

    `cluster`: an option that names one. Raises BadInput if --work-dir has no such run.
    """
    if cluster:
        if work_dir is not None:
            raise BadInput("--work-dir: it is for local runs, so it goes without --namespace, --kubeconfig, --context")
        return None
    home, found = (work_dir or WORK_DIRECTORY) / job, None
    if home.is_dir():
        from dtjob.local.runs import latest_run  # its import takes a while

        found = latest_run(home)
    if found is None and work_dir is not None:
        raise BadInput(f"--work-dir: {work_dir} has no run of {job}")
    if found is not None and work_dir is None:
        typer.echo(f"{what} of the local run {found}; with -n NAMESPACE, of the job in a cluster", err=True)
    return found


def _local_logs(run: Path, job: str, task: str | None, how: "How", *, follow: bool) -> int:
    """Print the logs of a local run. Returns the exit code: 1 if a run that is followed does not succeed."""
    from dtjob.api.phase import Phase
    from dtjob.cli.watching.printer import Printer
    from dtjob.local import logs
    from dtjob.local.runs import phase_of

    printer, text = Printer(), None
    if follow:
        for one in logs.follow(run, job, task):
            printer.line(*one)
        return 0 if phase_of(run) == Phase.SUCCEEDED else 1
    for of, text in logs.lines(run, job, task, previous=how.previous, attempt=how.attempt, tail=how.tail):
        printer.line(of, text)
    if text is None:
        _say_that_there_are_none(task or job, previous=how.previous)
    return 0


def _say_that_there_are_none(what: str, *, previous: bool) -> None:
    pod = "pod that was replaced" if previous else "pod"
    why = "; the log of a pod is deleted with it, and dtjob status shows the end of the last failed one"
    typer.echo(f"no {pod} of {what} has printed a line{why if previous else ''}", err=True)


def wait(
    job: JobName,
    wanted: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="STATE",
            help="State: End (success), Running, Suspended, Complete, Failed, FirstStep, Checkpoint or Deleted.",
        ),
    ] = "End",
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Longest time, such as 90s, 15m or 1h30m. Default: no limit.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Wait for a job. Exit code 0: the condition holds. 1: the job ended otherwise, or waits for you. 124: time is up.

    Example: dtjob wait digits --timeout 2h && echo trained
    """
    from dtjob.client.verbs.wait import check_wanted
    from dtjob.client.verbs.wait import wait as wait_for
    from dtjob.client.verbs.words import phase_of

    word, seconds = check_wanted(wanted), None if timeout is None else seconds_of(timeout, "--timeout")
    found = wait_for(connected(kubeconfig, context, namespace), job, word, seconds)
    typer.echo(f"{job}: {'deleted' if found is None else phase_of(found)}")


def events(job: JobName, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Print the events of a job and its pods, the newest last.

    Example: dtjob events digits
    """
    from dtjob.cli.watching.listing import event_table
    from dtjob.client.verbs.pods import events as events_of

    found = events_of(connected(kubeconfig, context, namespace), job)
    if not found:
        typer.echo(f"no events of {job}; a cluster keeps them for an hour", err=True)
    else:
        typer.echo("\n".join(event_table(found)))


def top(job: JobName, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Show a job while it trains. On a terminal it is a live view, else a line for each change. It ends with the job.

    Example: dtjob top digits
    """
    from dtjob.cli.watching.top import top as show

    raise typer.Exit(show(connected(kubeconfig, context, namespace), job, sys.stdout))


def ui(
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show the jobs of all namespaces.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port of this machine. 0: a free one.")
    ] = 6008,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show jobs on a page in the browser, until Ctrl-C.

    The page has curves, incidents, tasks and logs, and follows what happens. It changes nothing. Only browsers of this
    machine reach it, with the address that is printed.

    Example: dtjob ui -A
    """
    cluster = connected(kubeconfig, context, namespace)
    from dtjob.ui.cluster_source import ClusterSource
    from dtjob.ui.server import serving

    with serving(ClusterSource(cluster, everywhere=everywhere), port) as address:
        typer.echo(f"jobs of {'all namespaces' if everywhere else f'namespace {cluster.namespace}'}: {address}")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
