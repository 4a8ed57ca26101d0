# SPDX-License-Identifier: Apache-2.0
"""When an ended job is deleted."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.api.phase import Phase
from dtjob.plan.actions import Delete
from dtjob.plan.lifetime.time_to_live import deletion
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import JOB_UID, NOW, at

BOTH = {"ttlSecondsAfterFinished": 60, "ttlSecondsAfterFailed": 200}


def found(ttl: dict[str, int] | None, phase: Phase, seconds: float, lingers: bool = False) -> Any:
    """What becomes of a job that ended at NOW."""
    job = builders.job("Default", **(ttl or {}))
    situation = builders.situation(job, now=at(seconds), phase=phase, completion_time=NOW)
    deletes, again = deletion(situation, lingers)
    return [(one.kind, one.name, one.uid) for one in deletes], again


JOB = [("DistributedTrainingJob", "digits", JOB_UID)]


@pytest.mark.parametrize(
    ("ttl", "phase", "seconds", "expected"),
    [
        (None, Phase.SUCCEEDED, 10**8, ([], None)),
        (BOTH, Phase.SUCCEEDED, 59, ([], at(60))),
        (BOTH, Phase.SUCCEEDED, 60, (JOB, None)),
        (BOTH, Phase.FAILED, 60, ([], at(200))),
        (BOTH, Phase.FAILED, 200, (JOB, None)),
        ({"ttlSecondsAfterFinished": 60}, Phase.FAILED, 60, (JOB, None)),
        ({"ttlSecondsAfterFailed": 60}, Phase.SUCCEEDED, 10**8, ([], None)),
        ({"ttlSecondsAfterFailed": 0}, Phase.FAILED, 0, (JOB, None)),
        ({"ttlSecondsAfterFinished": 0, "ttlSecondsAfterFailed": 60}, Phase.FAILED, 0, ([], at(60))),
        ({"ttlSecondsAfterFailed": 86_400}, Phase.FAILED, 0, ([], at(300))),  # a clock may be set meanwhile
        (BOTH, Phase.FAILED, -3600, ([], at(-3300))),  # one that is behind
    ],
)
def test_each_end_has_a_time_of_its_own(ttl: dict[str, int] | None, phase: Phase, seconds: float, expected: Any):
    assert found(ttl, phase, seconds) == expected


def test_pods_that_end_by_themselves_are_waited_for():
    assert found(BOTH, Phase.SUCCEEDED, 60, lingers=True) == ([], None)


def test_an_evaluator_gets_to_what_was_saved_last():
    job = builders.job("Default", evaluator=True, ttlSecondsAfterFinished=0)
    pods = builders.all_pods(job)
    pods["chief-0"]["status"] = builders.ended(0)

    def deletes(now: float, status: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
        made = plan(builders.with_status(job, status), Children(tuple(pods.values())), at(now))
        return [one.kind for one in made.actions if isinstance(one, Delete)], made.status or status

    gone, status = deletes(0, {})
    assert (gone, status["phase"]) == ([], "Succeeded")
    gone, status = deletes(500, status)
    assert gone == []
    pods["evaluator-0"]["status"] = builders.ended(0)
    assert deletes(501, status)[0] == ["DistributedTrainingJob"]


def test_a_job_that_goes_on_stays():
    job = builders.job("Default", ttlSecondsAfterFinished=0, ttlSecondsAfterFailed=0)
    made = plan(job, Children(tuple(builders.all_pods(job).values())), at(10**6))
    assert not [one for one in made.actions if isinstance(one, Delete)]
