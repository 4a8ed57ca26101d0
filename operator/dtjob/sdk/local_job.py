# SPDX-License-Identifier: Apache-2.0
"""A job on this machine, as an object: `dtjob run` in a process of its own."""

import copy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dtjob.api.phase import ENDED, Phase
from dtjob.api.status.status import Status
from dtjob.client.errors import JobFailed, NotFound, Refused, TimedOut
from dtjob.client.verbs.fetch import PROGRAM, copied
from dtjob.client.verbs.steering import check_elastic, check_goes_on
from dtjob.client.verbs.wait import DELETED, END, check_wanted, is_reached
from dtjob.client.verbs.words import phase_of, summary
from dtjob.local import WORK_DIRECTORY
from dtjob.local.logs import follow as follow_run
from dtjob.local.logs import lines
from dtjob.local.runs import CHECKPOINTS, RunRecord, latest_run, record_of
from dtjob.local.terminal_line import plain
from dtjob.manifests.manifest_yaml import written
from dtjob.sdk.started_job import StartedJob

LOOK_SECONDS = 0.2
RUN = (sys.executable, "-m", "dtjob", "run")


class LocalJob(StartedJob):
    """One job on this machine. Its files are in .dtjob below the current directory, as those of `dtjob run`."""

    def __init__(self, manifest: dict[str, Any], work_directory: Path = WORK_DIRECTORY) -> None:
        super().__init__(str(manifest["metadata"]["name"]))
        self._manifest, self._home = manifest, work_directory.resolve() / self.name
        self._folder = Path(tempfile.mkdtemp(prefix="dtjob-"))
        self._is_deleted = False
        self._start()

    def wait(self, wanted: str = END, timeout: float | None = None) -> Status:  # noqa: D102 (of StartedJob)
        word, until = check_wanted(wanted), None if timeout is None else time.monotonic() + timeout
        while True:
            over = self._is_over
            try:
                stored = self._stored()
            except NotFound:
                if word == DELETED:
                    return Status.read({})
                raise JobFailed(f"{self.name}: deleted") from None
            if is_reached(stored, word) and (over or phase_of(stored) not in ENDED):
                return Status.read(stored["status"])
            if over and word != DELETED:
                raise JobFailed(f"{self.name}: {summary(stored)}")
            if until is not None and time.monotonic() >= until:
                raise TimedOut(f"{self.name}: {phase_of(stored)} after {timeout:g} s")
            time.sleep(LOOK_SECONDS)

    def logs(self, task: str | None = None, *, follow: bool = False) -> Iterator[str]:  # noqa: D102
        while (run := self._run()) is None and follow and not self._is_over:
            time.sleep(LOOK_SECONDS)
        if run is not None:
            for one, text in (follow_run if follow else lines)(run[0], self.name, task):
                yield f"{one} | {plain(text)}"

    def fetch(self, *paths: str, directory: Path | str = ".") -> list[Path]:  # noqa: D102
        run = self._run()
        if run is None:
            raise Refused(f"{self.name}: has not begun")
        return copied(_ask, self.name, str(run[0] / CHECKPOINTS), paths, Path(directory))

    def suspend(self) -> None:  # noqa: D102
        check_goes_on(self._stored(), "suspended")
        self._tell_to_end()

    def resume(self) -> None:  # noqa: D102
        check_goes_on(self._stored(), "resumed")
        if self._is_told or self._is_over:
            self._process.wait()
            self._start()

    def scale(self, workers: int) -> None:  # noqa: D102
        stored = self._stored()
        check_goes_on(stored, "scaled")
        check_elastic(stored)
        was_running = not (self._is_told or self._is_over)
        self.close()
        self._manifest = copy.deepcopy(self._manifest)
        self._manifest["spec"]["replicaSpecs"]["worker"]["replicas"] = workers
        if was_running:
            self._start()

    def delete(self) -> None:  # noqa: D102
        self._stored()
        self._tell_to_end()
        if not self._is_over:
            self._process.send_signal(signal.SIGTERM)  # a second signal, and another one: two of a kind may become one
        self._process.wait()
        self._is_deleted = True

    def close(self) -> None:
        """Save the job and end it if it still trains. The same job resumes."""
        self._tell_to_end()
        self._process.wait()

    @property
    def _is_over(self) -> bool:
        return self._process.poll() is not None

    def _start(self) -> None:
        run = latest_run(self._home)
        record = record_of(run) if run else None
        self._before = None if run is None or record is None else (run, record.starts)
        self._is_told = False
        file = self._folder / "job.yaml"
        file.write_text(written([self._manifest]))
        command = [*RUN, str(file), "--work-dir", str(self._home.parent)]
        with self._output.open("w") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    @property
    def _output(self) -> Path:
        """What `dtjob run` prints."""
        return self._folder / "output"

    def _tell_to_end(self) -> None:
        """Once: a second signal would end the job without saving."""
        if not self._is_told and not self._is_over:
            self._process.send_signal(signal.SIGINT)
        self._is_told = True

    def _run(self) -> tuple[Path, RunRecord] | None:
        """The directory and the record of this job's run, None until it has begun. An earlier run does not count."""
        run = latest_run(self._home)
        record = record_of(run) if run else None
        if run is None or record is None or (run, record.starts) == self._before:
            return None
        return run, record

    def _stored(self) -> dict[str, Any]:
        if self._is_deleted:
            raise NotFound(f"{self.name}: was deleted", 404, "NotFound")
        over, run = self._is_over, self._run()
        status = dict((run[1].status if run else None) or {})
        if over and run is None:
            status = {"phase": Phase.FAILED, "message": self._last_line()}
        elif over and status.get("phase") not in ENDED:
            others = [one for one in status.get("conditions") or () if one["type"] not in ("Running", "Suspended")]
            suspended = {"type": "Suspended", "status": "True"}
            status |= {"phase": Phase.SUSPENDED, "reason": None, "message": None, "replicaStatuses": None}
            status["conditions"] = [*others, suspended]
        return {**self._manifest, "status": {name: value for name, value in status.items() if value is not None}}

    def _last_line(self) -> str:
        """Why a run has not begun."""
        said = self._output.read_text(errors="replace").strip().splitlines()
        return said[-1].removeprefix("dtjob: ") if said else "dtjob run has printed nothing"


def _ask(arguments: Sequence[str], sink: Callable[[bytes], object]) -> None:
    """Run the program that reads files, on this machine."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    sink(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
