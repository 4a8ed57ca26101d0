# SPDX-License-Identifier: Apache-2.0
"""The command line: reads arguments and hands them to the command's file. Imports are late, so that --help is quick."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dtjob import __version__
from dtjob.cli.bad_input import BadInput
from dtjob.cli.commands import cluster, manifests, running, steering, submitting, watching
from dtjob.cli.commands.log_format import LogFormat, LogLevel
from dtjob.cli.commands.options import (
    Context,
    Kubeconfig,
    Namespace,
)
from dtjob.client.errors import ClientError

app = typer.Typer(
    name="dtjob",
    help="Distributed TensorFlow training: one manifest, on this machine or on Kubernetes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # without it, --help imports rich, which takes longer than all the rest
    context_settings={"help_option_names": ["-h", "--help"]},
)

BAD_INPUT, INTERRUPTED = 2, 130
PLUGIN = "kubectl-dtjob"
"""The name of this program as a plugin of kubectl."""
DefaultImage = Annotated[str | None, typer.Option(metavar="IMAGE", help="The image of jobs that leave out spec.image.")]
DefaultPodLabels = Annotated[
    list[str] | None,
    typer.Option("--default-pod-label", metavar="KEY=VALUE", help="A label for every pod; may be repeated."),
]
DefaultGangProvider = Annotated[
    str | None,
    typer.Option(metavar="PROVIDER", help="For gangs that name none: Kubernetes (so where left out), Volcano, …"),
]
DefaultPod = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help="For pods whose template leaves it out: annotations, env, imagePullSecrets, nodeSelector, tolerations, "
        "priorityClassName.",
    ),
]
CoschedulingScheduler = Annotated[str, typer.Option(help="The schedulerName of pods in gangs of Coscheduling.")]
OperatorNamespace = Annotated[
    str | None, typer.Option(help="Where the operator's pods are, for jobs' NetworkPolicies; in a pod, its own.")
]
StatusScrapers = Annotated[
    str, typer.Option(help="Who else may read /status and /metrics of jobs' pods: peers of a NetworkPolicy, JSON.")
]
ManifestFile = Annotated[Path, typer.Argument(metavar="FILE", help="A DistributedTrainingJob as YAML or JSON.")]


class ExplainOutput(StrEnum):
    """How `dtjob explain` answers."""

    TEXT = "text"
    YAML = "yaml"
    JSON = "json"


app.command("run")(running.run)


@app.command()
def explain(
    file: ManifestFile,
    output: Annotated[
        ExplainOutput, typer.Option("--output", "-o", help="yaml: the objects in full; json: all of it.")
    ] = ExplainOutput.TEXT,
    default_image: DefaultImage = None,
    default_pod_label: DefaultPodLabels = None,
    default_pod: DefaultPod = None,
    default_gang_provider: DefaultGangProvider = None,
    of_cluster: Annotated[
        bool, typer.Option("--cluster", help="With the namespace and the operator's defaults of the cluster.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what a job becomes in a cluster. It shows tasks, hosts, TF_CONFIG, failure rules and objects.

    Example: dtjob explain job.yaml; dtjob explain job.yaml --cluster -n team
    """
    from dtjob.cli.default_options import defaults
    from dtjob.cli.explain import explanation as explaining
    from dtjob.cli.job_file import read_job

    render = {
        ExplainOutput.TEXT: explaining.as_text,
        ExplainOutput.YAML: explaining.as_yaml,
        ExplainOutput.JSON: explaining.as_json,
    }
    given = defaults(default_image, default_pod_label or [], default_gang_provider, default_pod)
    job = read_job(file)
    if of_cluster:
        from dtjob.cli.explain.of_cluster import defaults_of, in_namespace

        found = watching.connected(kubeconfig, context, namespace)
        job, (given, said) = in_namespace(job, found.namespace), defaults_of(found)
        if said:
            typer.echo(f"note: {said}", err=True)
    # Piece by piece: with each task's TF_CONFIG, which has all addresses, the whole is half a GB for 4,000 workers.
    sys.stdout.writelines(render[output](job, given))
    sys.stdout.flush()


@app.command()
def operator(
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", "-n", help="Watch only this one; may be repeated.")
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Left out: as kubectl finds it, or the pod's own.")] = None,
    liveness: Annotated[
        str | None, typer.Option(help="host:port on which to answer /healthz; :port for every address.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="host:port on which to answer /metrics for Prometheus; :port for every address.")
    ] = None,
    resync_seconds: Annotated[float, typer.Option(min=0.1, help="How often everything is listed again.")] = 180.0,
    report_seconds: Annotated[
        float, typer.Option(min=0.1, help="How often chiefs are asked for their progress.")
    ] = 5.0,
    leader_election: Annotated[
        bool, typer.Option("--leader-election/--no-leader-election", help="Work only while holding a Lease.")
    ] = False,
    lease_namespace: Annotated[str | None, typer.Option(help="The Lease's namespace; in a pod, its own.")] = None,
    lease_name: Annotated[str, typer.Option(help="The Lease's name.")] = "dtjob",
    lease_seconds: Annotated[
        int, typer.Option(min=1, help="How long a leader that died keeps the others waiting.")
    ] = 15,
    default_image: DefaultImage = None,
    default_pod_label: DefaultPodLabels = None,
    default_pod: DefaultPod = None,
    default_gang_provider: DefaultGangProvider = None,
    coscheduling_scheduler: CoschedulingScheduler = "scheduler-plugins-scheduler",
    operator_namespace: OperatorNamespace = None,
    status_scrapers: StatusScrapers = "[]",
    concurrency: Annotated[int, typer.Option(min=1, max=1000, help="How many jobs are worked on at once.")] = 20,
    log_level: Annotated[LogLevel, typer.Option(help="debug: also each decision.")] = LogLevel.INFO,
    log_format: Annotated[LogFormat, typer.Option(help="How a line of the log is written.")] = LogFormat.TEXT,
) -> None:
    """Run the operator on kubectl's cluster, until a signal ends it.

    Example: dtjob operator -n team-a
    """
    from dtjob.cli.default_options import defaults

    try:
        from dtjob.cli.operator import election, endpoint, readers, run
        from dtjob.kube.process import Options
    except ModuleNotFoundError as error:
        raise BadInput(f"the operator needs the Python module {error.name}; install dtjob[operator]") from None

    options = Options(
        namespaces=namespace or [],
        kubeconfig=str(kubeconfig) if kubeconfig else None,
        resync_seconds=resync_seconds,
        report_seconds=report_seconds,
        concurrency=concurrency,
        liveness=endpoint("--liveness", liveness),
        metrics=endpoint("--metrics", metrics),
        election=election(lease_namespace, lease_name, lease_seconds) if leader_election else None,
        defaults=replace(
            defaults(default_image, default_pod_label or [], default_gang_provider, default_pod),
            readers=readers(operator_namespace, status_scrapers),
            coscheduling_scheduler=coscheduling_scheduler,
        ),
    )
    raise typer.Exit(run(options, log_level, log_format))


app.command("submit")(submitting.submit)
app.command("list")(watching.list_jobs)
app.command("status")(watching.status)
app.command("logs")(watching.logs)
app.command("wait")(watching.wait)
app.command("events")(watching.events)
app.command("top")(watching.top)
for _command in steering.COMMANDS:
    app.command()(_command)
app.command()(manifests.validate)
app.command()(manifests.convert)
app.command()(manifests.init)
app.command()(cluster.doctor)
app.command(hidden=True)(cluster.check)
app.command()(cluster.version)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dtjob {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that go before a command."""


def main() -> None:
    """Run the command line. Bad input is one clear sentence on standard error and exit code 2."""
    try:
        app(prog_name="kubectl dtjob" if Path(sys.argv[0]).name == PLUGIN else "dtjob")
    except BadInput as error:
        for line in error.lines:
            print(f"dtjob: {line}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except ClientError as error:
        print(f"dtjob: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:  # before a command has begun
        sys.exit(INTERRUPTED)
    except OSError as error:  # a file of the user, or where the output goes, whichever command it was
        if sys.argv[1:2] == ["operator"]:  # its log needs the place
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"dtjob: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
