# SPDX-License-Identifier: Apache-2.0
"""What one waits for, and how a wait ends."""

import json
import time
from typing import Any

import pytest

from dtjob.bad_input import BadInput
from dtjob.client.cluster import Cluster
from dtjob.client.errors import JobFailed, TimedOut
from dtjob.client.verbs.wait import DELETED, check_wanted, is_reached, wait
from tests.unit.operator.client.api_server import ApiServer, Fault
from tests.unit.operator.client.verbs.jobs import JOBS, RUNNING, job, stored


def test_states_to_wait_for_are_known_in_any_case() -> None:
    assert [check_wanted(word) for word in ("end", "COMPLETE", "succeeded")] == ["End", "Complete", "Complete"]
    with pytest.raises(BadInput, match="--for: Happy is none of End"):
        check_wanted("Happy")


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [("Running", True), ("Complete", False), ("End", False), ("Checkpoint", True), ("FirstStep", False)],
)
def test_each_state_of_a_running_job_is_reached_or_not(wanted: str, reached: bool) -> None:
    assert is_reached(job(**RUNNING), wanted) is reached


def test_a_failed_job_does_not_reach_end() -> None:
    assert not is_reached(job(phase="Failed"), "End")
    assert is_reached(job(phase="Succeeded"), "End")


def changed(phase: str, **status: Any) -> list[dict[str, Any]]:
    found = stored(phase)
    found["status"] |= status
    return [{"type": "MODIFIED", "object": found}]


@pytest.mark.parametrize("wanted", ["End", "Running", "FirstStep"])
def test_a_job_that_cannot_get_there_ends_a_wait_with_its_own_words(
    server: ApiServer, cluster: Cluster, wanted: str
) -> None:
    """Nobody but its user can go on with the second one."""
    server.answer(f"WATCH {JOBS}", changed("Failed", reason="ProgramFailed", message="it ended"))
    with pytest.raises(JobFailed, match=r"^digits: Failed \(ProgramFailed\): it ended$"):
        wait(cluster, "digits", wanted)
    server.answer(f"WATCH {JOBS}", changed("Pending", reason="ImageMissing", message="spec.image is left out"))
    with pytest.raises(JobFailed, match=r"^digits: Pending \(ImageMissing\): spec.image is left out$"):
        wait(cluster, "digits", wanted)


def test_a_job_without_an_image_can_still_be_suspended_and_deleted(server: ApiServer, cluster: Cluster) -> None:
    missing = changed("Pending", reason="ImageMissing")
    suspended = changed("Suspended", conditions=[{"type": "Suspended", "status": "True"}])
    server.answer(f"WATCH {JOBS}", missing + suspended)
    assert wait(cluster, "digits", "Suspended") is not None
    server.answer(f"WATCH {JOBS}", [*missing, {"type": "DELETED", "object": stored()}])
    assert wait(cluster, "digits", "Deleted") is None


def test_a_job_that_is_being_deleted_is_waited_for_by_its_end_alone(server: ApiServer, cluster: Cluster) -> None:
    """A pod that ends slowly may hold it for long, and its status is the last one from before."""
    deleted = stored()
    deleted["metadata"]["deletionTimestamp"] = "2026-11-23T11:00:00Z"
    server.answer(f"GET {JOBS}/digits", deleted)
    server.answer(f"WATCH {JOBS}", [{"type": "DELETED", "object": deleted}])
    with pytest.raises(JobFailed, match="digits: is being deleted"):
        wait(cluster, "digits", "Running")
    assert wait(cluster, "digits", DELETED) is None
    deleted["status"]["phase"] = "Succeeded"
    assert wait(cluster, "digits") == deleted


def test_a_wait_says_how_the_job_is_when_the_time_is_up(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"WATCH {JOBS}", [])
    with pytest.raises(TimedOut, match=r"^digits: Running after 0 s$"):
        wait(cluster, "digits", seconds=0)
    with pytest.raises(TimeoutError, match=r"^digits: Running after 0.1 s$"):
        wait(cluster, "digits", seconds=0.1)


SILENT = Fault(hold=True)


@pytest.mark.parametrize(
    ("answers", "watched"),
    [
        ([stored()], SILENT),
        ([stored()], Fault(broken=json.dumps(changed("Running")[0]).encode() + b"\n", hold=True)),
        ([stored(), SILENT], []),
    ],
    ids=["no answer to a watch", "a watch that falls silent", "no answer to a call"],
)
def test_a_wait_ends_in_time_if_the_cluster_falls_silent(
    server: ApiServer, cluster: Cluster, answers: list[Any], watched: Any
) -> None:
    server.answer(f"GET {JOBS}/digits", *answers)
    server.answer(f"WATCH {JOBS}", watched)
    began = time.monotonic()
    with pytest.raises(TimedOut, match=r"^digits: Running after 0.5 s$"):
        wait(cluster, "digits", seconds=0.5)
    assert time.monotonic() - began < 5
