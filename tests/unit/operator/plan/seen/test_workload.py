# SPDX-License-Identifier: Apache-2.0
"""What a Workload says, and what is written into it."""

from typing import Any

import pytest

from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.workload import Workload
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.queued import condition


def workload(*conditions: Manifest, spec: dict[str, Any] | None = None, **status: Any) -> Workload:
    metadata = {"name": "w", "uid": "u", "resourceVersion": "7", "generation": 2}
    sets = [{"name": "chief", "count": 1}, {"name": "worker", "count": 4, "minCount": 2}]
    spec = {"podSets": sets, "queueName": "team-a", **(spec or {})}
    return Workload({"metadata": metadata, "spec": spec, "status": {"conditions": list(conditions), **status}})


YES = (condition("QuotaReserved", True), condition("Admitted", True))


@pytest.mark.parametrize("last", [condition("Evicted", True), condition("Finished", True)])
def test_a_workload_is_admitted_until_it_is_evicted_or_finished(last: Manifest) -> None:
    assert workload(*YES).admitted
    assert workload(*YES, condition("Evicted", False)).admitted
    assert not workload(*YES, last).admitted
    assert not workload().admitted


def test_a_workload_that_is_being_deleted_is_not_admitted() -> None:
    manifest = workload(*YES).manifest
    manifest["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    assert (Workload(manifest).is_going, Workload(manifest).admitted) == (True, False)


def test_the_counts_of_a_workload_are_the_admitted_ones() -> None:
    assert workload().counts() == {"chief": 1, "worker": 4}
    assigned = [{"name": "chief"}, {"name": "worker", "count": 2}]
    assert workload(admission={"podSetAssignments": assigned}).counts() == {"chief": 1, "worker": 2}


def test_a_release_of_quota_counts_the_time_and_keeps_the_conditions_of_others() -> None:
    others = condition("Else", True)
    found = workload(
        *YES, others, condition("Evicted", True, "Preempted", "for w2"), accumulatedPastExecutionTimeSeconds=5
    )
    made = found.release(at(60))
    assert (made.version, made.uid, made.status) == ("7", "u", True)
    status = made.body["status"]
    assert (status["admission"], status["accumulatedPastExecutionTimeSeconds"]) == (None, 65)
    said = {one["type"]: one for one in status["conditions"]}
    assert said["Else"] == others
    assert said["QuotaReserved"]["status"] == "False"
    assert said["QuotaReserved"]["message"] == "for w2"
    assert said["Requeued"]["status"] == "True"
    assert said["QuotaReserved"]["lastTransitionTime"] == "2026-11-21T10:01:00Z"
    assert said["Evicted"]["lastTransitionTime"] == "2026-11-21T10:00:00Z"  # it does not change


def test_the_reason_of_pods_ready_distinguishes_recovery_from_start() -> None:
    def reason(ready: bool, *there: Manifest) -> str | None:
        made = workload(*YES, *there).keep(ready, {}, NOW)
        return made and next(one["reason"] for one in made.body["status"]["conditions"] if one["type"] == "PodsReady")

    assert reason(False) == "WaitForStart"
    assert reason(True) == "Started"
    assert reason(True, condition("PodsReady", False, "WaitForStart")) == "Started"
    assert reason(False, condition("PodsReady", True, "Started")) == "WaitForRecovery"
    assert reason(True, condition("PodsReady", False, "WaitForRecovery")) == "Recovered"
    assert reason(True, condition("PodsReady", True, "Recovered")) is None
    assert reason(False, condition("PodsReady", False, "WaitForRecovery")) is None


def test_the_count_of_reclaimable_pods_never_falls() -> None:
    ready = condition("PodsReady", True, "Started")
    found = workload(*YES, ready, reclaimablePods=[{"name": "worker", "count": 3}])
    assert found.keep(True, {"worker": 1}, NOW) is None
    made = found.keep(True, {"worker": 9, "chief": 1, "other": 1}, NOW)
    assert made.body["status"]["reclaimablePods"] == [{"name": "chief", "count": 1}, {"name": "worker", "count": 4}]


def test_the_condition_finished_has_its_reason_and_a_message_of_limited_length() -> None:
    made = workload(*YES).finish("Failed", "x" * 40_000, NOW)
    said = next(one for one in made.body["status"]["conditions"] if one["type"] == "Finished")
    assert (said["status"], said["reason"], len(said["message"])) == ("True", "Failed", 32_768)
