# SPDX-License-Identifier: Apache-2.0
"""`dtjob run`: trains one job on this machine and tells how it goes."""

import asyncio
import contextlib
import importlib.util
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dtjob.api.job import Job
from dtjob.api.phase import Phase
from dtjob.api.spec.strategy import LOCAL_TPU, Strategy
from dtjob.bad_input import BadInput
from dtjob.cli.run_script import job_of, words
from dtjob.client.verbs.words import story_lines
from dtjob.local import WORK_DIRECTORY
from dtjob.local.display.program_output import ProgramOutput
from dtjob.local.display.screen import Screen, log_to, write_line
from dtjob.local.display.snapshot import Snapshot
from dtjob.local.display.summary import finite, summary, summary_text
from dtjob.local.engine import Engine
from dtjob.local.here import left_aside, rules_left_aside
from dtjob.local.outcome import Outcome
from dtjob.local.processes import command
from dtjob.local.processes.addresses import NoFreePorts
from dtjob.local.processes.devices import devices_here, has_tpu, wanted
from dtjob.local.processes.launcher import Launcher
from dtjob.local.processes.starter import Starter
from dtjob.local.runs import Run, RunStateError, open_run
from dtjob.manifests.script import Script
from dtjob.objects import topology
from dtjob.objects.exit_codes import of_signal
from dtjob.objects.pod.pod import pod
from dtjob.objects.pod.storage import nothing_saved

if TYPE_CHECKING:
    from dtjob.ui.run_source import RunSource


@dataclass(frozen=True)
class Options:
    """The command's arguments. `json_output`: the summary as one JSON object on standard output, all else on stderr."""

    script: Script
    """A script, or a manifest's file with nothing else."""
    work_directory: Path
    fresh: bool = False
    json_output: bool = False
    quiet: bool = False
    """Show nothing that the program prints."""
    all_tasks: bool = False
    """Show what the program prints in every task, not in the chief task only."""
    ui: bool = False
    """Show the run on a page in the browser, also after its end."""


def run(options: Options, ahead: Launcher | None = None) -> int:
    """Train the job. Returns the exit code: 0 succeeded, 1 failed, 128+n stopped by signal n. Raises BadInput.

    `ahead`: a launcher that imports TensorFlow already.
    """
    job, in_vain = job_of(options.script)
    check_runs_here(job)
    if options.script.gpus is not None and (lack := lacking_gpus(job)):
        raise BadInput(f"--gpus: {lack}; leave it out, or send the script to a cluster with dtjob submit")
    try:
        record = open_run(job, options.work_directory.resolve(), options.fresh, options.script.kept_at)
    except RunStateError as error:
        raise BadInput(str(error)) from None
    try:
        with _page(record, options) as page:
            outcome = asyncio.run(_train(job, record, options, Starter(ahead), page, in_vain))
            record.close()
            code = _summed_up(record, options, outcome)
            if page is not None and outcome.interrupted is None:
                write_line(f"the page stays until Ctrl-C: {page.address}", sys.stderr)
                with contextlib.suppress(KeyboardInterrupt):
                    threading.Event().wait()
            return code
    except NoFreePorts as error:
        raise BadInput(str(error)) from None
    finally:
        record.close()


def _summed_up(record: Run, options: Options, outcome: Outcome) -> int:
    """Tell how the run has ended. Returns the exit code."""
    result = summary(outcome.snapshot, record.directory, record.resumed, outcome.interrupted)
    saved = record.latest_checkpoint()
    if saved is not None and outcome.interrupted is not None:
        # Saved after the last look at the chief, which does not wait for one when it is told to end.
        result["checkpoint"] = {**(result["checkpoint"] or {}), "step": saved}
        if saved > (result["steps"] or 0):
            result |= {"steps": saved, "lastStepLoss": None}
    if record.events.is_dir():
        result["events"] = str(record.events)
    paths = {name: _from_here(result[name]) for name in ("runDirectory", "log", "model", "events") if result.get(name)}
    lines = summary_text({**result, **paths}, Path(_from_here(record.logs)), _again(options))
    text = "\n".join((*lines, *story_lines(outcome.snapshot.status)))
    write_line(text, sys.stderr if options.json_output else sys.stdout)
    if options.json_output:
        write_line(json.dumps(finite(result), allow_nan=False), sys.stdout)
    if outcome.interrupted is not None:
        return of_signal(outcome.interrupted)
    return 0 if result["phase"] == Phase.SUCCEEDED else 1


def _again(options: Options) -> str:
    """The command that goes on with the run: without --fresh, which would begin another."""
    kept = [] if options.work_directory == WORK_DIRECTORY else ["--work-dir", str(options.work_directory)]
    return shlex.join(["dtjob", "run", *words(options.script), *kept])


def _from_here(path: str | Path) -> str:
    """A path as people read it: without the current directory before it. An address stays as it is."""
    return str(path).removeprefix(f"{Path.cwd()}{os.sep}")


def check_runs_here(job: Job) -> None:
    """Whether this machine can run the job as processes. Raises BadInput."""
    program = job.spec.program
    if program is None:
        raise BadInput(
            "spec.program: needed by `dtjob run`: without it the image's own command trains, in a cluster only"
        )
    if sys.platform != "linux":
        raise BadInput(
            f"`dtjob run` needs Linux (this is {sys.platform}); `kubectl apply` the manifest to a cluster instead"
        )
    tpu = job.spec.strategy_options.tpu if job.spec.strategy_options else None
    address = tpu.address if tpu else LOCAL_TPU
    if job.spec.strategy is Strategy.TPU and address == LOCAL_TPU and not has_tpu():
        raise BadInput(
            "spec.strategy: TPU needs a TPU, and this machine has none; `kubectl apply` the manifest to a cluster with "
            "TPUs, or choose another strategy"
        )
    for module, distribution in (("dtjob_trainer", "dtjob-trainer"), ("tensorflow", "dtjob-trainer[cpu]")):
        if importlib.util.find_spec(module) is None:
            raise BadInput(f"`dtjob run` needs the Python module {module}; install {distribution} beside dtjob")
    if program.entrypoint.endswith(".py") and not Path(program.entrypoint).is_file():
        where = f"is no file below {Path.cwd()}; run dtjob in the directory that it is relative to"
        raise BadInput(f"spec.program.entrypoint: {program.entrypoint} {where}")


def lacking_gpus(job: Job) -> str:
    """Why not every task gets GPUs of its own, empty if each does."""
    asked = wanted(pod(job, task, 0) for task in topology.all_tasks(job))
    there = len(devices_here(os.environ))
    return f"the tasks ask for {asked} GPUs, and this machine has {there or 'none'}" if asked > there else ""


class _Page(NamedTuple):
    source: "RunSource"
    address: str


@contextlib.contextmanager
def _page(record: Run, options: Options) -> Iterator[_Page | None]:
    """The page of the run, if it is asked for."""
    if not options.ui:
        yield None
        return
    from dtjob.ui.run_source import RunSource  # these import a web server
    from dtjob.ui.server import serving

    source = RunSource(record)
    with serving(source) as address:
        yield _Page(source, address)


async def _train(
    job: Job, record: Run, options: Options, starter: Starter, page: _Page | None, in_vain: list[str]
) -> Outcome:
    program = None if options.quiet else ProgramOutput(record.logs, job, all_tasks=options.all_tasks)
    screen = Screen(sys.stderr if options.json_output else sys.stdout, program)

    def observe(snapshot: Snapshot) -> None:
        screen.observe(snapshot, engine.stopping)
        if page is not None:
            page.source.observe(snapshot)

    engine = Engine(job, record, observe, screen.event, starter)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _stop, engine, screen, number)
    with log_to(record.logs / "dtjob.log", screen), screen.shown():
        screen.say(f"{job.metadata.name}: {record.why}; files and logs in {_from_here(record.directory)}")
        for line in (*(f"warning: {one}" for one in in_vain), *_differences(job)):
            screen.say(line)
        if page is not None:
            screen.say(f"the run on a page: {page.address}")
        outcome = await engine.run()
        screen.observe(outcome.snapshot, outcome.interrupted is not None)
        if page is not None:
            page.source.observe(outcome.snapshot)
        return outcome


def _stop(engine: Engine, screen: Screen, number: signal.Signals) -> None:
    if engine.stopping:
        screen.say(f"{number.name} again: killing what is left")
    else:
        screen.say(f"{number.name}: every task is asked to save and end; once more kills them")
    engine.stop(number)


def _differences(job: Job) -> list[str]:
    """What is not here as it would be in a cluster, and what the job may not be meant to do, in words."""
    pods = (pod(job, task, 0) for task in topology.all_tasks(job))
    missing = sorted({part for one in pods for part in command.only_in_a_cluster(one)})
    missing += rules_left_aside(job)
    if lack := lacking_gpus(job):
        missing.append(f"nvidia.com/gpu ({lack})")
    only = [f"only in a cluster, left out here: {', '.join(missing)}"] if missing else []
    unsaved = [f"warning: {warning}"] if (warning := nothing_saved(job)) else []
    return [*unsaved, *only, *(f"left aside here: {field}" for field in left_aside(job))]
