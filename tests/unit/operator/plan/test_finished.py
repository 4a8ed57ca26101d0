# SPDX-License-Identifier: Apache-2.0
"""Which tasks have done their part, over a job's life."""

import pytest

from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import at


@pytest.mark.parametrize("told", ["evicted", "deleted"])
def test_a_supervised_chief_that_finishes_while_its_pod_is_deleted_has_succeeded(told: str):
    job = builders.job("Mirrored")
    end = {**builders.ended(0, at(5), message='{"state": "finished", "step": 460}'), "phase": "Failed"}
    pod = builders.pod(job, "chief-0", builders.disrupted() | end if told == "evicted" else end)
    made = plan(job, Children((builders.deleting(pod),)), at(6))
    assert (made.status["phase"], made.status["progress"]["step"]) == ("Succeeded", 460)
    without = builders.job("Mirrored", program=False)
    made = plan(without, Children((builders.deleting(pod),)), at(6))
    assert made.status["phase"] != "Succeeded"


@pytest.mark.parametrize("program", [True, False])
def test_a_finished_worker_is_remembered_and_its_pod_may_go(program: bool):
    """A drain, the pod garbage collector, a user who tidies up: the others must not be restarted for it."""
    job = builders.job(program=program)
    pods = builders.all_pods(job)
    job, _ = builders.looked(job, Children(tuple(pods.values())))
    assert "finished" not in job.status["internal"]
    pods["worker-0"]["status"] = builders.ended(0, at(10))
    job, _ = builders.looked(job, Children(tuple(pods.values())), at(11))
    assert job.status["internal"]["finished"] == [{"role": "worker", "attempt": 0, "indexes": "0"}]
    del pods["worker-0"]
    gone = plan(job, Children(tuple(pods.values())), at(20))
    assert builders.pods_made(gone) == []
    assert gone.status is None, "nothing has changed"
    assert job.status["replicaStatuses"]["worker"]["succeeded"] == 1
