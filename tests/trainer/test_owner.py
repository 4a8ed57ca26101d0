# SPDX-License-Identifier: Apache-2.0
"""Two jobs and one checkpoint directory, with real processes: who trains, who waits, and who is refused."""

import contextlib
import json
import signal
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.harness import Cluster

OWNER = "OWNER"


class Jobs:
    """Jobs of one task each, which all write into one directory."""

    def __init__(self, home: Path, uri: bool = False) -> None:
        self.home, self.checkpoints, self.gate = home, home / "checkpoints", home / "gate"
        self._directory = f"file://{self.checkpoints}" if uri else str(self.checkpoints)
        self._open = contextlib.ExitStack()

    def make(self, uid: str, *roles: str, grace: int = 1) -> Cluster:
        """A job whose chief is about to train. With a `grace` of 1 it ends itself 0.1 s after SIGTERM."""
        checkpoint = {"everySteps": 10, "directory": self._directory}
        counts = dict.fromkeys(("chief", *roles), 1)
        program = ("owned.py", str(self.gate))
        job = Cluster(self.home / uid, "Default", counts, *program, checkpoint=checkpoint, uid=uid, grace=grace)
        return self._open.enter_context(job)

    def start(self, uid: str, grace: int = 1) -> Cluster:
        """Start such a job."""
        job = self.make(uid, grace=grace)
        job.start()
        return job

    def train(self, uid: str, grace: int = 1) -> Cluster:
        """Start such a job and wait until it has saved."""
        job = self.start(uid, grace)
        job["chief-0"].wait_for_checkpoint()
        return job

    def mark(self) -> dict[str, Any]:
        """What the mark says."""
        found: dict[str, Any] = json.loads((self.checkpoints / OWNER).read_text())
        return found

    def ends_well(self, job: Cluster) -> None:
        """Let `job` end, and see that nothing is left of its mark."""
        self.gate.touch()
        job.expect_success("chief-0")
        self.gate.unlink()
        assert not list(self.checkpoints.glob(f"{OWNER}*"))

    def close(self) -> None:
        """End what still runs."""
        self._open.close()


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    made = Jobs(tmp_path)
    yield made
    made.close()


def resumed(job: Cluster) -> bool:
    """Whether the job trains on from a checkpoint, and has waited for nobody."""
    status = job["chief-0"].wait_for_checkpoint()
    return status["restoredStep"] > 0 and "in use by" not in job["chief-0"].output()


def test_a_second_live_job_is_refused_in_words_that_name_the_first(jobs: Jobs) -> None:
    first = jobs.train("first")
    torn = jobs.checkpoints / "ckpt-77_temp"
    torn.mkdir()
    second = jobs.start("second")["chief-0"]
    waits = second.wait_until(lambda status: "in use by" in (status.get("message") or ""), "its message")
    assert "in use by job default/test (uid first); waiting until it ends" in waits["message"]
    assert second.exit_code() == 1
    error = second.status["exception"]
    assert error["type"] == "CheckpointInUseError"
    assert error["permanent"] is True, "no restart of it helps while the first one trains"
    assert error["message"] == (
        f"checkpoint.storage {jobs.checkpoints} is in use by job default/test (uid first); "
        "write another checkpoint.storage.subPath or volume in one of the two jobs"
    )
    assert torn.is_dir(), "it may be what the first one is writing"
    assert jobs.mark()["uid"] == "first"
    jobs.ends_well(first)


@pytest.mark.parametrize(
    "end", [signal.SIGTERM, pytest.param(None, marks=pytest.mark.slow)], ids=["stopped", "finished"]
)
def test_a_new_job_goes_on_at_once_where_the_first_has_ended(jobs: Jobs, end: signal.Signals | None) -> None:
    first = jobs.train("first", grace=30)
    if end is None:
        jobs.ends_well(first)
    else:
        first["chief-0"].kill(end)
        assert first["chief-0"].exit_code() == 143
    second = jobs.train("second")
    assert resumed(second)
    jobs.ends_well(second)


def test_a_killed_job_goes_on_at_once_and_another_job_once_the_mark_is_old(jobs: Jobs) -> None:
    first = jobs.train("first")
    first["chief-0"].kill()
    first["chief-0"].exit_code()
    assert jobs.mark()["uid"] == "first"
    first.start()
    assert resumed(first)
    first["chief-0"].kill()
    first["chief-0"].exit_code()
    second = jobs.train("second")
    output = second["chief-0"].output()
    assert "waiting until it ends or its mark OWNER is 2 s old" in output
    assert "taken over from job default/test (uid first)" in output
    assert second["chief-0"].status["restoredStep"] > 0
    assert second["chief-0"].status["message"] is None
    jobs.ends_well(second)


@pytest.mark.slow
def test_a_frozen_job_whose_directory_was_taken_over_writes_no_more(jobs: Jobs) -> None:
    first = jobs.train("first")
    first["chief-0"].kill(signal.SIGSTOP)
    second = jobs.train("second")
    first["chief-0"].kill(signal.SIGCONT)
    assert first["chief-0"].exit_code() == 1
    assert "in use by job default/test (uid second)" in first["chief-0"].status["exception"]["message"]
    assert jobs.mark()["uid"] == "second"
    jobs.ends_well(second)


@pytest.mark.slow
def test_two_jobs_that_begin_at_once_do_not_train_in_one_directory(jobs: Jobs) -> None:
    both = [jobs.make(uid) for uid in ("one", "other")]
    for job in both:
        job.start(go=False)
    for job in both:
        job["chief-0"].say({"generation": 1})
    with ThreadPoolExecutor() as pool:
        ends = {pool.submit(job["chief-0"].exit_code): job for job in both}
        ended, running = wait(ends, return_when=FIRST_COMPLETED)
        jobs.gate.touch()
    assert [(end.result(), ends[end]["chief-0"].status["exception"]["type"]) for end in ended] == [
        (1, "CheckpointInUseError")
    ]
    assert [end.result() for end in running] == [0]


def test_an_evaluator_evaluates_no_other_jobs_checkpoints(jobs: Jobs) -> None:
    first = jobs.train("first")
    second = jobs.make("second", "evaluator")
    second.start("evaluator-0")
    passed_over = "in use by job default/test (uid first), whose checkpoints are not evaluated here"
    evaluator = second["evaluator-0"]
    evaluator.wait_until(lambda status: passed_over in (status.get("message") or ""), "its message")
    assert "evaluation" not in evaluator.status
    jobs.ends_well(first)
    second.start("chief-0")
    evaluator.wait_until(lambda status: "evaluation" in status, "an evaluation")
    jobs.gate.touch()
    second.expect_success()


@pytest.mark.slow
def test_a_directory_that_is_a_uri_has_an_owner_too(tmp_path: Path) -> None:
    """gs:// goes the same way through tf.io.gfile; file:// is the scheme that is here without a network."""
    jobs = Jobs(tmp_path, uri=True)
    with contextlib.closing(jobs):
        first = jobs.train("first")
        second = jobs.start("second")["chief-0"]
        assert second.exit_code() == 1
        assert "write another checkpoint.storage.uri" in second.status["exception"]["message"]
        jobs.ends_well(first)
