# SPDX-License-Identifier: Apache-2.0
"""The arguments of `dtjob run`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dtjob.cli.bad_input import BadInput
from dtjob.cli.commands.options import (
    Arguments,
    Evaluator,
    Gpus,
    Name,
    ParameterServers,
    ScriptStrategy,
    Workers,
)
from dtjob.cli.work_directory import WORK_DIRECTORY

ONLY_IN_A_CLUSTER = {
    "--image": "the Python that runs dtjob trains here",
    "--claim": "this machine has no claims; --checkpoint DIR keeps the checkpoints",
    "--source": "the files of this machine are used where they are",
    "--requirements": "the packages of this Python are used; install them with pip first",
    "--queue": "no queue admits jobs here; the job trains at once",
    "--namespace": "this machine has no namespaces",
}
"""Options of `dtjob submit` that mean nothing here, with the reason."""


class RunOutput(StrEnum):
    """How `dtjob run` answers: yaml goes with --dry-run."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def _of_submit(name: str) -> Any:
    """An option that --help does not show, for those who have the command line of `dtjob submit`."""
    return typer.Option(f"--{name}", *(["-n"] if name == "namespace" else []), hidden=True)


def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A DistributedTrainingJob as YAML or JSON, or a Python script.")
    ],
    arguments: Arguments = None,
    output: Annotated[
        RunOutput, typer.Option("--output", "-o", help="json: the summary as one object. yaml: with --dry-run.")
    ] = RunOutput.TEXT,
    work_dir: Annotated[Path, typer.Option("--work-dir", help="Where runs are kept.")] = WORK_DIRECTORY,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin a new run, also where one could be resumed.")] = False,
    strategy: ScriptStrategy = None,
    workers: Workers = None,
    ps: ParameterServers = None,
    evaluator: Evaluator = False,
    gpus: Gpus = None,
    name: Name = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            "--storage",
            metavar="DIR|URI",
            help="Where a script's job keeps its checkpoints. Left out: in the run.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print a script's manifest, and train nothing.")] = False,
    image: Annotated[str | None, _of_submit("image")] = None,
    claim: Annotated[str | None, _of_submit("claim")] = None,
    source: Annotated[str | None, _of_submit("source")] = None,
    requirements: Annotated[str | None, _of_submit("requirements")] = None,
    queue: Annotated[str | None, _of_submit("queue")] = None,
    namespace: Annotated[str | None, _of_submit("namespace")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", hidden=True)] = False,
) -> None:
    """Train on this machine, with processes for pods. Ctrl-C saves and ends the job; running it again resumes.

    Examples: dtjob run job.yaml; dtjob run train.py --strategy MultiWorkerMirrored --workers 2 -- --epochs 5
    """
    from dtjob.cli.script import Script

    del follow  # a local run is always followed
    _check_means_something(image, claim, source, requirements, queue, namespace)
    script = Script(file, tuple(arguments or ()), strategy, workers, ps, evaluator, checkpoint, gpus, name)
    if dry_run:
        from dtjob.cli.run_script import printed

        typer.echo(printed(script, as_json=output is RunOutput.JSON), nl=False)
        return
    if output is RunOutput.YAML:
        raise BadInput("--output yaml: it prints a manifest, so it goes with --dry-run")
    from dtjob.local.processes.ahead import launcher_ahead

    with launcher_ahead(file) as launcher:
        from dtjob.cli.run import Options  # meanwhile: it takes a third of a second
        from dtjob.cli.run import run as train

        code = train(Options(script, work_dir, fresh, output is RunOutput.JSON), launcher)
    raise typer.Exit(code)


def _check_means_something(*values: str | None) -> None:
    """Raise BadInput for options of a cluster; `values` are in the order of ONLY_IN_A_CLUSTER."""
    for (option, why), value in zip(ONLY_IN_A_CLUSTER.items(), values, strict=True):
        if value is not None:
            raise BadInput(f"{option}: goes with dtjob submit; {why}")
