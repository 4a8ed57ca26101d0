# SPDX-License-Identifier: Apache-2.0
"""Recovery and goodput of training without Kubernetes: `dtjob run`, and the program that one writes for TFJob.

As in the scenario `recovery`, one task after the other is killed (kill -9), one each minute. Nobody makes pods here, so
this is each system's rule at its best: dtjob's tasks are forked from a process that has imported TensorFlow, and under
TFJob's rule (ExitCode) every process that ends by a signal or with a code of 128 or more starts again, at once.
"""

import argparse
import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml

from benchmarks.by_hand import HandWritten
from benchmarks.operators.node_bed import POLL_SECONDS, PROGRAM, StepFile
from benchmarks.operators.recovery import GOALS, OPTIONS, START_SECONDS, UNITS, disturbed, estimate, main
from benchmarks.operators.rounds import Scenario
from benchmarks.operators.statistics import Numbers
from benchmarks.operators.training_jobs import GROUPS, OWN_LOOPS
from benchmarks.replica_specs import replica_specs
from dtjob.api.job import API_VERSION, KIND
from tests.trainer.support.local_runs import LocalRun

NAMES = {"MultiWorkerMirrored": "local_recovery", "ParameterServer": "local_recovery_ps"}
"""What the results are called."""
_TRAINS = ("starting", "training", "saving", "serving")
"""What a supervisor says of a process that may be killed."""
LOOK_SECONDS = 0.05
"""How often is looked whether a process has ended."""


class Machine:
    """A directory for each measurement."""

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="dtjob-local-recovery-"))
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def clear(self) -> None:
        """Remove what a measurement has left."""
        shutil.rmtree(self.directory)
        self.directory.mkdir()


class Group(ABC):
    """A side: a group of processes that trains under `strategy` and saves each `every` steps."""

    name: str

    def __init__(self, strategy: str, every: int) -> None:
        self._strategy, self._every = strategy, every

    @abstractmethod
    def start(self, bed: Machine) -> None:
        """Begin to train."""

    @abstractmethod
    def stop(self) -> None:
        """End all of it."""

    @abstractmethod
    def pid(self, task: str) -> int | None:
        """The process that trains of a task, None while it has none."""

    @abstractmethod
    def problem(self) -> str:
        """Why it does not train any more, empty where it does."""

    def kill(self, role: str, index: int, until: float) -> float | None:
        """SIGKILL what trains of a task, as soon as there is something; when that was, None where nothing was there."""
        while time.monotonic() < until:
            if (pid := self.pid(f"{role}-{index}")) is not None:
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    at = time.monotonic()
                    os.kill(pid, signal.SIGKILL)
                    return at
            time.sleep(POLL_SECONDS)
        return None


class ByDtjob(Group):
    """`dtjob run`."""

    name = "dtjob"

    def start(self, bed: Machine) -> None:
        """Begin to train."""
        spec = {
            "strategy": self._strategy,
            "image": "dtjob-trainer:dev",
            "program": {"entrypoint": str(PROGRAM), "args": ["dtjob", str(bed.directory), str(self._every)]},
            "replicaSpecs": replica_specs(GROUPS[self._strategy]),
            "checkpoint": {"storage": {"volume": {"emptyDir": {}}}, "everySteps": self._every},
        }
        manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "recovery"}, "spec": spec}
        file = bed.directory / "job.yaml"
        file.write_text(yaml.safe_dump(manifest))
        self._run = LocalRun(file, bed.directory / "work", output=bed.directory / "run.log")

    def stop(self) -> None:
        """End all of it."""
        self._run.__exit__()

    def pid(self, task: str) -> int | None:
        """The process that trains of a task, None while it has none."""
        status = self._run.statuses().get(task, {})
        return status.get("trainingPid") if status.get("state") in _TRAINS else None

    def problem(self) -> str:
        """Why it does not train any more, empty where it does."""
        return "" if self._run.process.poll() is None else "dtjob run has ended"


class StartedAgain(HandWritten):
    """Processes that start again by themselves, where TFJob's rule has it so."""

    def __init__(self, directory: Path, strategy: str, every: int) -> None:
        loop = OWN_LOOPS[strategy], str(directory), str(every)
        super().__init__(directory, GROUPS[strategy], *loop, program=PROGRAM)
        self.problem = ""
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._start_again, daemon=True)

    def __enter__(self) -> Self:
        self.start()
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()
        super().__exit__()

    def _start_again(self) -> None:
        while not (self.problem or self._over.wait(LOOK_SECONDS)):
            try:
                for task, process in list(self.processes.items()):
                    code = process.poll()
                    if code is not None and not is_tried_again(code):
                        self.problem = f"{task} has ended with {code}"
                    elif code is not None:
                        role, _, index = task.rpartition("-")
                        self.start_task(role, int(index))
            except OSError as error:
                self.problem = f"nothing is started again: {error}"


class ByRule(Group):
    """TFJob's program under TFJob's rule."""

    name = "tfjob"

    def start(self, bed: Machine) -> None:
        """Begin to train."""
        self._run = StartedAgain(bed.directory, self._strategy, self._every)
        self._run.__enter__()

    def stop(self) -> None:
        """End all of it."""
        self._run.__exit__()

    def pid(self, task: str) -> int | None:
        """The process that trains of a task, None while it has none."""
        process = self._run.processes[task]
        return process.pid if process.poll() is None else None

    def problem(self) -> str:
        """Why it does not train any more, empty where it does."""
        return self._run.problem


SIDES: dict[str, type[Group]] = {"dtjob": ByDtjob, "tfjob": ByRule}


def is_tried_again(code: int) -> bool:
    """Whether TFJob starts a task again that has ended so (as of `subprocess`), under its restart policy ExitCode."""
    return code < 0 or code >= 128


def measure(bed: Machine, side: Group, strategy: str, options: argparse.Namespace) -> Numbers:
    """One side, once."""
    steps, started = StepFile(bed.directory), time.monotonic()
    trains = steps.wait_step(options.every + 1, START_SECONDS)
    took = time.monotonic() - started
    found = disturbed(steps, strategy, options, side.kill) if trains else {}
    if not trains or side.problem():
        logs = (f"== {file}\n{file.read_text(errors='replace')[-2000:]}" for file in bed.directory.rglob("*.log"))
        raise RuntimeError(f"{side.name} did not train: {side.problem()}\n" + "\n".join(logs))
    return {"secondsToStart": took, **found}


@dataclass(frozen=True, kw_only=True)
class OnMachine(Scenario[Machine, Group]):
    """On this machine, under a `strategy`."""

    strategy: str

    def bed(self, names: Sequence[str]) -> Machine:
        """It is there."""
        return Machine()

    def side(self, name: str, options: argparse.Namespace) -> Group:
        """One of SIDES."""
        return SIDES[name](self.strategy, options.every)

    def programs(self, names: Sequence[str]) -> tuple[str, ...]:
        """None."""
        return ()


def scenario(strategy: str) -> OnMachine:
    """The scenario under one of GROUPS."""

    def measure_it(bed: Machine, side: Group, options: argparse.Namespace) -> Numbers:
        return measure(bed, side, strategy, options)

    return OnMachine(
        strategy=strategy,
        name=NAMES[strategy],
        title=f"Recovery and goodput of processes under {strategy}",
        measure=measure_it,
        estimate=estimate,
        sides=tuple(SIDES),
        command=f"python -m benchmarks.operators.local_recovery {strategy}",
        options=OPTIONS,
        units=UNITS,
        goals=GOALS,
    )


if __name__ == "__main__":
    main(scenario, __doc__)
