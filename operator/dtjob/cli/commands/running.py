# SPDX-License-Identifier: Apache-2.0
"""The arguments of `dtjob run`."""

from pathlib import Path
from typing import Annotated

import typer

from dtjob.bad_input import BadInput
from dtjob.cli.commands import options
from dtjob.local import WORK_DIRECTORY

ONLY_IN_A_CLUSTER = {
    "--cpu": "processes of this machine share its CPUs",
    "--memory": "processes of this machine share its memory",
    "--env-from-secret": "this machine has no Secrets; give --env NAME=VALUE, or export the variables",
    "--mount": "this machine has no claims; its files are used where they are",
    "--image": "the Python that runs dtjob trains here",
    "--claim": "this machine has no claims; --checkpoint DIR keeps the checkpoints",
    "--claim-size": "this machine has no claims; --checkpoint DIR keeps the checkpoints",
    "--source": "the files of this machine are used where they are",
    "--requirements": "the packages of this Python are used; install them with pip first",
    "--queue": "no queue admits jobs here; the job trains at once",
    **dict.fromkeys(("--namespace", "-n"), "this machine has no namespaces"),
    **dict.fromkeys(("--kubeconfig", "--context"), "this machine needs no cluster"),
    **dict.fromkeys(("--follow", "-f"), "a run on this machine always shows its output"),
}
"""Options of `dtjob submit` that mean nothing here, with the reason. `usage.py` says it."""


Checkpoints = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|URI", help="Folder or bucket for the checkpoints of a script's job. Default: a folder of the run."
    ),
]


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Python script, or the manifest of a job.")],
    arguments: options.Arguments = None,
    output: Annotated[
        options.Output,
        typer.Option(
            "--output", "-o", help="Form of the output. json: the summary as one object. yaml: only with --dry-run."
        ),
    ] = options.Output.TEXT,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Hide what the program prints.")] = False,
    all_tasks: Annotated[
        bool, typer.Option("--all-tasks", help="Show what the program prints in each task. Default: in the chief task.")
    ] = False,
    ui: Annotated[
        bool, typer.Option("--ui", help="Show the run on a page in the browser. It stays after the end, until Ctrl-C.")
    ] = False,
    work_dir: Annotated[Path, typer.Option("--work-dir", metavar="DIR", help="Folder of the runs.")] = WORK_DIRECTORY,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin a new run instead of resuming the last one.")] = False,
    strategy: options.Strategy = None,
    workers: options.Workers = None,
    ps: options.ParameterServers = None,
    evaluator: options.Evaluator = False,
    gpus: options.Gpus = None,
    env: options.Variables = None,
    name: options.Name = None,
    settings: options.Settings = None,
    checkpoint: Checkpoints = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the manifest of a script's job, and train nothing.")
    ] = False,
) -> None:
    """Train on this machine, with processes for pods. Ctrl-C saves and ends the job; running it again resumes.

    Examples:
        dtjob run job.yaml
        dtjob run train.py --workers 2 -- --epochs 5
    """
    from dtjob.manifests.script import Script

    if quiet and all_tasks:
        raise BadInput("--all-tasks: it shows what the program prints, and --quiet does not; leave one of them out")
    script = Script(
        file,
        tuple(arguments or ()),
        *(strategy, workers, ps, evaluator, checkpoint, gpus, name),
        env=tuple(env or ()),
        settings=tuple(settings or ()),
    )
    if dry_run:
        from dtjob.cli.run_script import printed

        typer.echo(printed(script, as_json=output is options.Output.JSON), nl=False)
        return
    if output is options.Output.YAML:
        raise BadInput("--output yaml: it prints a manifest, so it goes with --dry-run")
    from dtjob.local.processes.launcher import launcher_ahead

    with launcher_ahead(file) as launcher:
        from dtjob.cli.run import Options  # meanwhile: it takes a third of a second
        from dtjob.cli.run import run as train

        how = Options(script, work_dir, fresh, output is options.Output.JSON, quiet, all_tasks, ui)
        code = train(how, launcher)
    raise typer.Exit(code)
