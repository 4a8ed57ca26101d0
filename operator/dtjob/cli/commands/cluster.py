# SPDX-License-Identifier: Apache-2.0
"""The arguments of `dtjob operator`, and of commands about a cluster and about dtjob itself."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dtjob import __version__
from dtjob.bad_input import BadInput
from dtjob.cli.commands.default_options import DefaultGangProvider, DefaultImage, DefaultPod, DefaultPodLabels, defaults
from dtjob.cli.commands.options import Context, Kubeconfig, Namespace, connected


class LogLevel(StrEnum):
    """The least severe lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a line is written."""

    TEXT = "text"
    LOGFMT = "logfmt"
    JSON = "json"


Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Namespace to watch; may be repeated. Default: all."),
]
OwnKubeconfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Kubeconfig. Default: the one that kubectl uses, or the pod's own.")
]
Liveness = Annotated[str | None, typer.Option(metavar="[HOST]:PORT", help="Address for /healthz. Default: none.")]
Metrics = Annotated[
    str | None, typer.Option(metavar="[HOST]:PORT", help="Address for Prometheus' /metrics. Default: none.")
]
ResyncSeconds = Annotated[
    float,
    typer.Option(
        min=0.1, metavar="SECONDS", help="Time after which all jobs are listed again. Their pods are listed each hour."
    ),
]
ReportSeconds = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="Time after which chiefs are asked for their progress again.")
]
LeaderElection = Annotated[
    bool, typer.Option("--leader-election/--no-leader-election", help="Work only while holding a Lease.")
]
LeaseNamespace = Annotated[
    str | None, typer.Option(metavar="NAME", help="Namespace of the Lease. Default: the pod's own.")
]
LeaseName = Annotated[str, typer.Option(metavar="NAME", help="Name of the Lease.")]
LeaseSeconds = Annotated[
    int, typer.Option(min=1, metavar="SECONDS", help="Time that the others wait for a leader that died.")
]
Concurrency = Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Most jobs that are worked on at once.")]
Level = Annotated[LogLevel, typer.Option(help="Least severe lines that are written. debug: also each decision.")]
Format = Annotated[LogFormat, typer.Option(help="Form of a line of the log.")]
CoschedulingScheduler = Annotated[
    str, typer.Option(metavar="NAME", help="schedulerName of pods in gangs of Coscheduling.")
]
OperatorNamespace = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Namespace of the operator's pods, for NetworkPolicies. Default: the pod's own."),
]
StatusScrapers = Annotated[
    str, typer.Option(metavar="JSON", help="Peers of a NetworkPolicy that may read /status and /metrics of jobs' pods.")
]


def operator(
    namespace: Namespaces = None,
    kubeconfig: OwnKubeconfig = None,
    liveness: Liveness = None,
    metrics: Metrics = None,
    resync_seconds: ResyncSeconds = 180.0,
    report_seconds: ReportSeconds = 5.0,
    leader_election: LeaderElection = False,
    lease_namespace: LeaseNamespace = None,
    lease_name: LeaseName = "dtjob",
    lease_seconds: LeaseSeconds = 15,
    default_image: DefaultImage = None,
    default_pod_label: DefaultPodLabels = None,
    default_pod: DefaultPod = None,
    default_gang_provider: DefaultGangProvider = None,
    coscheduling_scheduler: CoschedulingScheduler = "scheduler-plugins-scheduler",
    operator_namespace: OperatorNamespace = None,
    status_scrapers: StatusScrapers = "[]",
    concurrency: Concurrency = 20,
    log_level: Level = LogLevel.INFO,
    log_format: Format = LogFormat.TEXT,
) -> None:
    """Run the operator until a signal ends it.

    Example: dtjob operator -n team-a
    """
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
            defaults(default_image, default_pod_label, default_gang_provider, default_pod),
            readers=readers(operator_namespace, status_scrapers),
            coscheduling_scheduler=coscheduling_scheduler,
        ),
    )
    raise typer.Exit(run(options, log_level, log_format))


def doctor(namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Check whether a cluster can run jobs.

    It looks at definition, rights, operator, nodes, GPUs, storage, queues and gangs. Exit code 1: there is a problem.
    What you may not look at is said.

    Example: dtjob doctor
    """
    from dtjob.cli.doctor import PROBLEM, look_at_all

    problems = 0
    for finding in look_at_all(connected(kubeconfig, context, namespace)):
        problems += finding.level == PROBLEM
        typer.echo(str(finding))
    raise typer.Exit(1 if problems else 0)


def version(namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Show the versions of dtjob and of the operator.

    Example: dtjob version
    """
    from dtjob.cli.doctor import version_of_operator
    from dtjob.client.errors import ClientError

    typer.echo(f"dtjob {__version__}")
    try:
        typer.echo(version_of_operator(connected(kubeconfig, context, namespace)))
    except ClientError as error:
        typer.echo(f"operator: {error}", err=True)
