# SPDX-License-Identifier: Apache-2.0
"""The arguments of `dtjob operator`."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dtjob.cli.bad_input import BadInput
from dtjob.cli.commands.default_options import DefaultGangProvider, DefaultImage, DefaultPod, DefaultPodLabels
from dtjob.cli.commands.log_format import LogFormat, LogLevel, configure

CoschedulingScheduler = Annotated[str, typer.Option(help="The schedulerName of pods in gangs of Coscheduling.")]
OperatorNamespace = Annotated[
    str | None, typer.Option(help="Where the operator's pods are, for jobs' NetworkPolicies; in a pod, its own.")
]
StatusScrapers = Annotated[
    str, typer.Option(help="Who else may read /status and /metrics of jobs' pods: peers of a NetworkPolicy, JSON.")
]


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
    raise typer.Exit(run(options, partial(configure, log_level, log_format)))
