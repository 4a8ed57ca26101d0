# SPDX-License-Identifier: Apache-2.0
"""Runs on disk: `.dtjob/<job>/run-<n>/`, and which of them `dtjob run` goes on with."""

import contextlib
import fcntl
import hashlib
import json
import os
import uuid
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from dtjob.api.job import Job
from dtjob.api.names import API_VERSION, KIND
from dtjob.api.phase import Phase
from dtjob.api.status.activity import Activity
from dtjob.api.status.status import Status
from dtjob.times import rfc3339

FILE = "run.json"
LOCK = "lock"
CHECKPOINTS = "checkpoints"
UNFINISHED = "Running"
"""What stands for the phase of a run that has neither succeeded nor failed, whatever its job's last one was."""


class RunStateError(Exception):
    """The work directory cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class RunRecord:
    """What is kept of a run. `uid` stays the same when it resumes, as checkpoints and the DONE mark belong to it."""

    uid: str
    job: str
    spec_hash: str
    phase: str = UNFINISHED
    starts: int = 1
    """How often `dtjob run` has worked on this run."""
    status: dict[str, Any] | None = None
    """The job's last status."""


@dataclass
class Run:
    """One run and its directory. Holds the job's lock while it is open."""

    directory: Path
    record: RunRecord
    why: str
    """In words: whether it is new or resumed, and why."""
    resumed: bool
    lock: IO[str]
    active_before: Activity | None = None
    """How long its job was active in earlier starts: activeDeadlineSeconds counts that."""
    kept_at: Path | None = None
    """Where the command line wants the checkpoints. None: in the run's directory."""

    @property
    def checkpoints(self) -> Path:
        """Where the job's checkpoint directory is."""
        return self.kept_at or self.directory / CHECKPOINTS

    @property
    def events(self) -> Path:
        """Where the job writes for TensorBoard, if it does."""
        return self.checkpoints / "events"

    @property
    def logs(self) -> Path:
        """Where each pod's log is."""
        return logs_of(self.directory)

    @property
    def cluster_file(self) -> Path:
        """The cluster spec with this machine's addresses."""
        return self.directory / "cluster.json"

    def latest_checkpoint(self) -> int | None:
        """The step of the newest whole checkpoint in this run's directory, None if there is none.

        None too if the program calls fit several times: only its process knows how steps count on.
        """
        if any(self.checkpoints.glob("stage-*")):
            return None
        names = (path.stem.removeprefix("ckpt-") for path in self.checkpoints.glob("ckpt-*.index"))
        return max((int(name) for name in names if name.isdecimal()), default=None)

    def save(self, phase: str, status: dict[str, Any]) -> None:
        """Write the record, whole or not at all: a power cut must not leave half a file. Raises RunStateError."""
        self.record = replace(self.record, phase=phase, status=status)
        try:
            _write(self.directory, self.record)
        except OSError as error:
            raise RunStateError(_not_written(self.directory, error)) from None

    def close(self) -> None:
        """Let another `dtjob run` of this job begin."""
        self.lock.close()


NOT_THE_TRAINING = {
    *("active_deadline_seconds", "elastic_policy", "managed_by", "start_deadline_seconds", "suspend"),
    "ttl_seconds_after_finished",
}
"""Fields of the spec that say nothing about what is trained: a run continues with others."""


def spec_hash(job: Job) -> str:
    """Twelve hex digits that change with what the job's spec says about the training."""
    left_out: dict[str, Any] = dict.fromkeys(NOT_THE_TRAINING, True)
    if job.spec.elastic_policy is not None:  # another number of workers continues at the last one's checkpoint
        left_out["replica_specs"] = {"worker": {"replicas"}}
    content = job.spec.model_dump_json(by_alias=True, exclude_unset=True, exclude=left_out)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def open_run(job: Job, work_directory: Path, fresh: bool = False, kept_at: Path | None = None) -> Run:
    """The run to work on: the latest where it has not succeeded, else a new one. Raises RunStateError.

    - kept_at: where the checkpoints are. None: in the run's directory.
    """
    if fresh and kept_at is not None and any(kept_at.glob("ckpt-*.index")):
        raise RunStateError(
            f"--fresh: {kept_at} holds checkpoints, which the run would go on from; name another --checkpoint"
        )
    home = work_directory / job.metadata.name
    try:
        _make(home)
        lock = (home / LOCK).open("a")
    except OSError as error:
        raise RunStateError(_not_written(home, error)) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        message = f"job {job.metadata.name} is being run in {home} already; end that run, or give another --work-dir"
        if not isinstance(error, BlockingIOError):
            message = f"--work-dir: {home} is on a file system without locks ({error.strerror}); give a local directory"
        raise RunStateError(message) from None
    latest = latest_run(home)
    record = record_of(latest) if latest else None
    if latest and record and is_done(latest, record.uid):
        record = replace(record, phase=Phase.SUCCEEDED.value)  # dtjob itself was killed after the training had ended
    resume, why = choose(record, latest.name if latest else "", spec_hash(job), fresh)
    active_before = None
    if resume and latest is not None and record is not None:
        directory, active_before = latest, _active_before(latest, record)
        record = replace(record, phase=UNFINISHED, starts=record.starts + 1, spec_hash=spec_hash(job), status=None)
    else:
        directory = home / f"run-{_number(latest) + 1 if latest else 1}"
        record = RunRecord(uid=str(uuid.uuid4()), job=job.metadata.name, spec_hash=spec_hash(job))
    run = Run(directory, record, why, resume, lock, active_before, kept_at)
    try:
        for path in (run.directory, run.checkpoints, run.logs):
            _make(path)
        _write(run.directory, run.record)
    except OSError as error:
        raise RunStateError(_not_written(run.directory, error)) from None
    return run


def choose(record: RunRecord | None, name: str, wanted_hash: str, fresh: bool) -> tuple[bool, str]:
    """Whether to resume the latest run, and why in words. `record` is None if there is none that can be read."""
    if record is None:
        return False, "new run"
    if fresh:
        return False, "new run, as --fresh asks"
    if record.phase == Phase.SUCCEEDED:
        return False, f"new run: {name} has succeeded"
    if record.spec_hash != wanted_hash:
        return False, f"new run: the manifest has changed since {name}"
    if record.phase == Phase.FAILED:
        return True, f"resumes {name}, which failed, with all its restarts again; --fresh begins a new one"
    return True, f"resumes {name}, which had not finished; --fresh begins a new one"


def latest_run(home: Path) -> Path | None:
    """The newest run directory of a job, None before the first."""
    runs = [path for path in home.glob("run-*") if path.is_dir() and _number(path)]
    return max(runs, key=_number, default=None)


def logs_of(run: Path) -> Path:
    """Where each pod's log of a run is."""
    return run / "logs"


def record_of(directory: Path) -> RunRecord | None:
    """The record of a run, None if it cannot be read."""
    try:
        return RunRecord(**json.loads((directory / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None  # a run that began and never wrote its record has nothing to resume


def as_object(run: Path) -> dict[str, Any]:
    """The job of a run as an API server would have it, as far as the run's record tells."""
    record = record_of(run)
    status = {**(record.status or {}), "phase": record.phase} if record else {"phase": UNFINISHED}
    written = datetime.fromtimestamp(run.stat().st_ctime, UTC)
    metadata = {"name": run.parent.name, "creationTimestamp": status.get("startTime") or rfc3339(written)}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {}, "status": status}


def phase_of(run: Path) -> str:
    """The phase in a run's record; UNFINISHED if it has none."""
    record = record_of(run)
    return record.phase if record else UNFINISHED


def is_at_work(home: Path) -> bool:
    """Whether a `dtjob run` works on a job, whose runs are in `home`."""
    try:
        with (home / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def is_done(directory: Path, uid: str) -> bool:
    """Whether the run's checkpoint directory has the mark that training has ended (contract.md)."""
    try:
        mark = json.loads((directory / CHECKPOINTS / "DONE").read_text())
    except (OSError, ValueError):
        return False
    return isinstance(mark, dict) and mark.get("uid") == uid


def _active_before(directory: Path, record: RunRecord) -> Activity | None:
    """How long the job of an unfinished run was active until its record was last written, which is as it is stopped. A
    run that has failed gets all its time again, as it gets its restarts."""
    active = Status.read(record.status or {}).active
    if record.phase == Phase.FAILED or active is None:
        return None
    written = datetime.fromtimestamp((directory / FILE).stat().st_mtime, UTC)
    return active.ended(written)


def _number(path: Path) -> int:
    digits = path.name.removeprefix("run-")
    return int(digits) if digits.isdecimal() else 0


def _not_written(directory: Path, error: OSError) -> str:
    return f"--work-dir: {directory} cannot be written: {error.strerror or error}"


def _write(directory: Path, record: RunRecord) -> None:
    unfinished = directory / f".{FILE}"
    with unfinished.open("w") as file:
        file.write(json.dumps(asdict(record), indent=1))
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(directory / FILE)
    _sync(directory)


def _make(directory: Path) -> None:
    """Make a directory where it is not there, and those above it. A power cut does not take them again."""
    new = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for each in new:
        _sync(each.parent)


def _sync(directory: Path) -> None:
    """Bring the names in a directory to disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # as some file systems say that do no such thing
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
