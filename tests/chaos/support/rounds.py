# SPDX-License-Identifier: Apache-2.0
"""One kind of job, again and again. When a job has ended, its checkpoints are copied and the next job is applied."""

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.support.bed import JOBS, Bed
from tests.chaos.support.kinds import Kind
from tests.chaos.support.patience import patiently
from tests.chaos.support.sightings import Sightings
from tools.cluster.rest import ApiError, Object

Say = Callable[[str], None]


@dataclass
class Ended:
    """A job that has ended: its last status, the seconds since it was applied, and a copy of what it has saved."""

    kind: Kind
    name: str
    status: Object
    seconds: float
    saved: Path

    @property
    def succeeded(self) -> bool:
        """Whether its phase is Succeeded."""
        return bool(self.status["phase"] == "Succeeded")

    def told(self) -> str:
        """Its result in one line."""
        restarts, goodput = self.status.get("restarts", {}), self.status.get("goodput", {})
        steps = self.status.get("progress", {}).get("step")
        return (
            f"{self.name}: {self.status['phase']} after {self.seconds:.0f} s at step {steps}, restarts "
            f"{restarts.get('total', 0)} {restarts.get('causes', {})}, goodput {goodput.get('percentage')} % "
            f"{goodput.get('seconds')}"
        )


class Rounds:
    """A thread that runs one kind of job. `ended` lists its jobs that have ended, in order."""

    def __init__(self, bed: Bed, kind: Kind, sightings: Sightings, say: Say, kept: Path) -> None:
        """`kept` is a new directory for copies of what the jobs save."""
        self._bed, self._kind, self._sightings, self._say = bed, kind, sightings, say
        self._kept = kept
        self.ended: list[Ended] = []
        self.error: BaseException | None = None
        self.enough = threading.Event()
        """No further job is applied."""
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name=kind.name, daemon=True)
        self._thread.start()

    def over(self) -> bool:
        """Whether the last job has ended."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """Do not wait for the job that still runs."""
        self._given_up.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self.ended or not self.enough.is_set():
                self.ended.append(self._round(f"{self._kept.name}-{self._kind.name}-{len(self.ended) + 1}"))
                self._say(self.ended[-1].told())
                if not self.ended[-1].succeeded:
                    return
        except BaseException as error:
            self.error = error
            self._say(f"{self._kind.name}: {error!r}")

    def _round(self, name: str) -> Ended:
        directory = self._bed.claim(self._kind.name, name)
        manifest = self._kind.manifest(name, self._bed.image)
        began = time.monotonic()
        patiently(lambda: self._create(manifest))
        while not self._over(name):
            time.sleep(0.5)
            assert not self._given_up.is_set(), f"{name} has not ended: {self._sightings.jobs.get(name)}"
        job = patiently(lambda: self._bed.api.get("dtjobs", JOBS, name))
        ended = Ended(self._kind, name, job["status"], time.monotonic() - began, self._kept / name)
        shutil.copytree(directory, ended.saved, ignore=shutil.ignore_patterns("events", "ballast"))
        if ended.succeeded:
            patiently(lambda: self._bed.api.delete("dtjobs", JOBS, name))
            while any(pod.startswith(f"{name}-") for pod in self._sightings.pods):
                time.sleep(0.5)
                assert not self._given_up.is_set(), f"the pods of {name} are not gone: {list(self._sightings.pods)}"
            shutil.rmtree(directory)
        return ended

    def _create(self, manifest: Object) -> None:
        try:
            self._bed.api.create("dtjobs", JOBS, manifest)
        except ApiError as error:
            if error.status != 409:  # an answer that was lost
                raise

    def _over(self, name: str) -> bool:
        phase = self._sightings.jobs.get(name, {}).get("status", {}).get("phase")
        return phase in ("Succeeded", "Failed")
