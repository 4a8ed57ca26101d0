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
from dtjob.cli.commands import manifests
from dtjob.cli.log_format import LogFormat, LogLevel
from dtjob.cli.work_directory import WORK_DIRECTORY

app = typer.Typer(
    name="dtjob",
    help="Distributed TensorFlow training: one manifest, on this machine or on Kubernetes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # without it, --help imports rich, which takes longer than all the rest
    context_settings={"help_option_names": ["-h", "--help"]},
)

BAD_INPUT = 2
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
ScriptStrategy = Annotated[
    str | None,
    typer.Option(
        metavar="STRATEGY",
        help="Of a script's job: Mirrored, ParameterServer, … Left out: what fits the other options and the GPUs here.",
    ),
]
ManifestFile = Annotated[Path, typer.Argument(metavar="FILE", help="A DistributedTrainingJob as YAML or JSON.")]


class RunOutput(StrEnum):
    """How `dtjob run` answers: yaml goes with --dry-run."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


class ExplainOutput(StrEnum):
    """How `dtjob explain` answers."""

    TEXT = "text"
    YAML = "yaml"
    JSON = "json"


@app.command("run")
def run_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A DistributedTrainingJob as YAML or JSON, or a Python script.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS]...", help="The arguments of a script.", show_default=False)
    ] = None,
    output: Annotated[
        RunOutput, typer.Option("--output", "-o", help="json: the summary as one object. yaml: with --dry-run.")
    ] = RunOutput.TEXT,
    work_dir: Annotated[Path, typer.Option("--work-dir", help="Where runs are kept.")] = WORK_DIRECTORY,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin a new run, also where one could be resumed.")] = False,
    strategy: ScriptStrategy = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Workers of a script's job.")] = None,
    ps: Annotated[int | None, typer.Option("--ps", min=1, help="Parameter servers of a script's job.")] = None,
    evaluator: Annotated[bool, typer.Option("--evaluator", help="Give a script's job an evaluator.")] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="DIR|URI", help="Where a script's job keeps its checkpoints. Left out: in the run."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print a script's manifest, and train nothing.")] = False,
) -> None:
    """Train on this machine, with processes for pods. Ctrl-C saves and ends the job; running it again resumes.

    Examples: dtjob run job.yaml; dtjob run train.py --strategy MultiWorkerMirrored --workers 2 -- --epochs 5
    """
    from dtjob.cli.script import Script

    script = Script(file, tuple(arguments or ()), strategy, workers, ps, evaluator, checkpoint)
    if dry_run:
        from dtjob.cli.run_script import printed

        typer.echo(printed(script, as_json=output is RunOutput.JSON), nl=False)
        return
    if output is RunOutput.YAML:
        raise BadInput("--output yaml: it prints a manifest, so it goes with --dry-run")
    from dtjob.local.ahead import launcher_ahead

    with launcher_ahead(file) as launcher:
        from dtjob.cli.run import Options, run  # meanwhile: it takes a third of a second

        code = run(Options(script, work_dir, fresh, output is RunOutput.JSON), launcher)
    raise typer.Exit(code)


@app.command()
def validate(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Manifests to check.")]) -> None:
    """Check manifests as the API server would, without one."""
    from dtjob.cli.validate import verdicts

    for verdict in verdicts(files):
        typer.echo(verdict)


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
) -> None:
    """Show what a job would be in a cluster: tasks, hosts and TF_CONFIG, rules about failures, objects created."""
    from dtjob.cli import explain as explaining
    from dtjob.cli.default_options import defaults
    from dtjob.cli.job_file import read_job

    render = {
        ExplainOutput.TEXT: explaining.as_text,
        ExplainOutput.YAML: explaining.as_yaml,
        ExplainOutput.JSON: explaining.as_json,
    }
    given = defaults(default_image, default_pod_label or [], default_gang_provider, default_pod)
    # Piece by piece: with each task's TF_CONFIG, which has all addresses, the whole is half a GB for 4,000 workers.
    sys.stdout.writelines(render[output](read_job(file), given))
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
    coscheduling_scheduler: Annotated[
        str, typer.Option(help="The schedulerName of pods in gangs of Coscheduling.")
    ] = "scheduler-plugins-scheduler",
    operator_namespace: Annotated[
        str | None, typer.Option(help="Where the operator's pods are, for jobs' NetworkPolicies; in a pod, its own.")
    ] = None,
    status_scrapers: Annotated[
        str, typer.Option(help="Who else may read /status and /metrics of jobs' pods: peers of a NetworkPolicy, JSON.")
    ] = "[]",
    concurrency: Annotated[int, typer.Option(min=1, max=1000, help="How many jobs are worked on at once.")] = 20,
    log_level: Annotated[LogLevel, typer.Option(help="debug: also each decision.")] = LogLevel.INFO,
    log_format: Annotated[LogFormat, typer.Option(help="How a line of the log is written.")] = LogFormat.TEXT,
) -> None:
    """Run the operator against the cluster that kubectl would use, until it is told to stop."""
    from dtjob.cli.default_options import defaults
    from dtjob.cli.operator import election, endpoint, readers, run
    from dtjob.kube.process import Options

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


@app.command()
def check(
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", help="Ask only in this one.")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Left out: as kubectl finds it, or the pod's own.")] = None,
) -> None:
    """Ask the cluster whether it serves DistributedTrainingJobs."""
    from dtjob.cli.check import run

    typer.echo(run(str(kubeconfig) if kubeconfig else None, namespace))


app.command("convert")(manifests.convert)


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
        app()
    except BadInput as error:
        for line in error.lines:
            print(f"dtjob: {line}", file=sys.stderr)
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
