"""Jobs that the last release began, with all their objects as it left them, under this operator: they live on.

last_release.json was written by the last release's own operator in its simulated cluster: the job and its children in
six moments of their lives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dtjob.api.job import KIND
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World

_WRITTEN = json.loads(Path(__file__).with_name("last_release.json").read_text())
LEFT: dict[str, list[Manifest]] = {moment: found["objects"] for moment, found in _WRITTEN.items()}
SECONDS: dict[str, int] = {moment: found["seconds"] for moment, found in _WRITTEN.items()}
"""How old the job was."""
NEW_IN_STATUS = {"active", "firstStepTime"}


@contextmanager
def upgraded(moment: str) -> Iterator[World]:
    """This operator, which begins at this moment of the job's life."""
    world = World(builders.job("Default", managed_by="kueue.x-k8s.io/multikueue"))  # so that nothing is made yet
    try:
        world.run(SECONDS[moment])
        for one in deepcopy(LEFT[moment]):
            world.cluster.objects[one["kind"], one["metadata"]["name"]] = one
            world.cluster.change(one["kind"], one["metadata"]["name"], lambda _: None)  # its version, in this cluster
        world.restart()
        world.run(2)
        yield world
    finally:
        world.close()


def uids(found: list[Manifest] | dict[str, Manifest]) -> dict[str, str]:
    pods = [one for one in found if one["kind"] == "Pod"] if isinstance(found, list) else found.values()
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in pods}


def set_spec(world: World, **fields: Any) -> None:
    """What a user changes after the upgrade."""

    def change(job: Manifest) -> None:
        job["spec"].update(fields)
        job["metadata"]["generation"] += 1

    world.cluster.change(KIND, "digits", change)
    world.run(2)


def all_run(world: World) -> None:
    for name, pod in world.pods.items():
        if pod.get("status", {}).get("phase") not in ("Running", "Failed"):
            world.cluster.change("Pod", name, lambda one: one.update(status=builders.running()))
    world.run(2)


def test_the_last_release_did_not_know_of_what_came_since() -> None:
    for job, *_ in LEFT.values():
        assert not NEW_IN_STATUS & job["status"].keys()
        assert not {"Suspended", "Complete"} & {one["type"] for one in job["status"]["conditions"]}


@pytest.mark.parametrize("moment", LEFT)
def test_it_goes_on_as_it_was(moment: str) -> None:
    """No pod is replaced, no restart counted, nothing forgotten."""
    before = LEFT[moment][0]["status"]
    with upgraded(moment) as world:
        world.run(60)
        after = world.job.status
        assert (after["phase"], after["reason"]) == (before["phase"], before["reason"])
        assert uids(world.pods) == uids(LEFT[moment])
        for kept in ("restarts", "attempts", "firstFailure", "startTime", "completionTime", "rendezvousPort"):
            assert after.get(kept) == before.get(kept), kept
        held = {one["type"] for one in after["conditions"] if one["status"] == "True"}
        assert ("Complete" in held) is (moment == "Succeeded")
        assert not world.cluster.events
        assert ("active" in after) is (after["phase"] not in ("Succeeded", "Failed"))  # it was looked at


@pytest.mark.parametrize("moment", ["Pending", "Running", "Restarting", "RunningAgain"])
def test_it_can_be_suspended_and_goes_on(moment: str) -> None:
    before = LEFT[moment][0]["status"]
    with upgraded(moment) as world:
        set_spec(world, suspend=True)
        world.run(120)
        assert (world.job.status["phase"], world.pods) == ("Suspended", {})
        set_spec(world, suspend=False)
        all_run(world)
        after = world.job.status
        assert (after["phase"], len(world.pods)) == ("Running", 3)
        assert (after["restarts"], after.get("incident")) == (before["restarts"], before.get("incident"))
        assert not set(uids(world.pods)) & set(uids(LEFT[moment]))


def test_a_rule_holds_for_its_next_failure() -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    with upgraded("RunningAgain") as world:
        set_spec(world, failurePolicy={"maxRestarts": 10, "rules": [rule]})
        failed = builders.ended(42, world.now())
        world.cluster.change("Pod", "digits-worker-0-0", lambda one: one.update(status=failed))
        world.run(15)
        assert (world.job.status["phase"], world.job.status["reason"]) == ("Failed", "PodFailurePolicy")
        assert world.job.status["restarts"]["total"] == 1


@pytest.mark.parametrize(
    ("moment", "field", "reason"),
    [
        ("Pending", "startDeadlineSeconds", "StartDeadlineExceeded"),
        ("RunningAgain", "activeDeadlineSeconds", "DeadlineExceeded"),
    ],
)
def test_a_deadline_holds_for_it(moment: str, field: str, reason: str) -> None:
    with upgraded(moment) as world:
        set_spec(world, runPolicy={"cleanPods": "Running", field: 600})
        world.run(560)
        assert world.job.status["phase"] == LEFT[moment][0]["status"]["phase"]
        world.run(40)
        assert (world.job.status["phase"], world.job.status["reason"]) == ("Failed", reason)


@pytest.mark.parametrize("moment", ["Succeeded", "Failed"])
def test_one_that_had_ended_is_deleted_when_its_time_has_come(moment: str) -> None:
    with upgraded(moment) as world:
        set_spec(world, runPolicy={"cleanPods": "Running", "ttlSecondsAfterFinished": {moment.lower(): 86400}})
        assert (KIND, "digits") in world.cluster.objects
        world.run(86400)
        assert (KIND, "digits") not in world.cluster.objects
