# SPDX-License-Identifier: Apache-2.0
"""Creating pods where the cluster refuses: how often it is asked, what is said, and what comes when it does no more."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dtjob.api.job import KIND
from dtjob.api.spec.scheduling import GangProvider
from dtjob.controller.cluster import ClusterError, JobKey, Refused
from dtjob.controller.creation import in_groups
from dtjob.controller.pace.slots import CALLS_OF_A_JOB, SMALLEST_SHARE, GivingWay
from dtjob.kube.api_error import ApiError
from dtjob.objects import gangs, kueue, labels, shared
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Repair
from tests.unit.operator import builders
from tests.unit.operator.builders import stranger
from tests.unit.operator.simulation.operator import World, job_manifest

GROUP = gangs.KINDS[GangProvider.KUBERNETES]


class Quota:
    """Lets so many pods exist, and counts whom it refuses."""

    def __init__(self, world: World, pods: int) -> None:
        self.pods, self.admitted, self.refused = pods, 0, 0
        refuse(world, self._why)

    def _why(self, pod: Manifest) -> ClusterError | None:
        if self.admitted >= self.pods:
            self.refused += 1
            name = pod["metadata"]["name"]
            return Refused(f'pods "{name}" is forbidden: exceeded quota: small, limited: pods={self.pods}')
        self.admitted += 1
        return None


def refuse(made: World, why: Callable[[Manifest], ClusterError | None]) -> None:
    """From now on the cluster answers the creation of a pod with this error, if there is one."""
    create = made.cluster.create

    async def creating(manifest: Manifest) -> Manifest:
        if manifest["kind"] == "Pod" and (error := why(manifest)) is not None:
            raise error
        return await create(manifest)

    made.cluster.create = creating  # type: ignore[method-assign]


def refuse_workers(made: World, why: str) -> None:
    refuse(made, lambda pod: Refused(why) if labels.of(pod)[labels.ROLE] == "worker" else None)


def world(workers: int, **job: Any) -> World:
    return World(builders.job(workers=workers, **job))


def test_objects_that_pods_need_are_created_first_and_repairs_and_workloads_run_apart() -> None:
    service, policy, group = ({"kind": kind, "metadata": {"name": "a"}} for kind in ("Service", "NetworkPolicy", GROUP))
    pods = [Create("Pod", f"a-{role}-0-0", dict, role) for role in ("chief", "worker")]
    workload, repair = Create(kueue.KIND, "a", dict), Repair(policy, policy, "spec.ingress")
    needed, roles, alone = in_groups([workload, *pods, repair, Create.of(service), Create.of(group)])
    assert [one.kind for one in needed] == ["Service", GROUP]
    assert roles == {"chief": [pods[0]], "worker": [pods[1]]}
    assert alone == [workload, repair]


def test_a_quota_is_not_asked_again_at_every_event() -> None:
    with world(100) as made:
        quota = Quota(made, 25)
        made.run(5)
        assert len(made.pods) == 25
        assert quota.refused <= CALLS_OF_A_JOB  # those that were under way
        before = quota.refused
        for number in range(10):  # every pod changes, and each change is heard of
            for name in list(made.pods):
                status = {"phase": "Pending", "podIP": f"10.0.0.{number}"}
                made.cluster.change("Pod", name, lambda one, status=status: one.update(status=status))
            made.run(0.6)
        made.run(60)
        assert quota.refused - before <= 66 / 15 + 1


def one_call_at_a_time(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a large job gives way to small ones; each pod takes a fifth of a second."""
    monkeypatch.setattr(GivingWay, "share", lambda self, now: SMALLEST_SHARE)
    create = made.cluster.create

    async def slowly(manifest: Manifest) -> Manifest:
        if manifest["kind"] == "Pod":
            await asyncio.sleep(0.2)
        return await create(manifest)

    made.cluster.create = slowly  # type: ignore[method-assign]


def test_a_large_job_stops_creating_pods_after_a_quota_refused_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(100) as made:
        quota = Quota(made, 10)
        one_call_at_a_time(made, monkeypatch)
        made.run(12)
        assert quota.admitted == 10
        assert quota.refused == 1


def test_a_large_job_stops_creating_pods_once_it_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(100) as made:
        one_call_at_a_time(made, monkeypatch)
        made.run(8)
        before = sum(call.startswith("create Pod") for call in made.cluster.calls)
        made.cluster.change(KIND, "digits", lambda one: one["spec"].update(suspend=True))
        made.run(1)
        assert sum(call.startswith("create Pod") for call in made.cluster.calls) - before <= 1
        assert made.job.status["phase"] == "Suspended"


def test_a_single_message_says_how_many_pods_wait_for_quota() -> None:
    with world(40) as made:
        Quota(made, 25)
        made.run(5)
        message = made.job.status["message"]
        assert message.count("exceeded quota") == 1
        assert "(15 more such pods wait)" in message
        assert sorted(event.reason for event in made.cluster.events) == ["Blocked", "FailedCreate", "SuccessfulCreate"]
        made.run(10)  # until it is said that no scheduler looks at the pods that are there
        version = made.cluster.objects[KIND, "digits"]["metadata"]["resourceVersion"]
        made.run(120)
        assert made.job.status["message"] == message
        assert made.cluster.objects[KIND, "digits"]["metadata"]["resourceVersion"] == version


def test_a_quota_that_is_raised_lets_the_others_come() -> None:
    with world(40) as made:
        quota = Quota(made, 25)
        made.run(5)
        quota.pods = 1000
        made.run(16)
        assert len(made.pods) == 41
        assert made.job.status["reason"] == "WaitingForPods"
        assert {one["type"]: one["status"] for one in made.job.status["conditions"]}["Blocked"] == "False"


def test_a_role_that_is_refused_does_not_hold_up_another() -> None:
    with world(40, strategy="ParameterServer", ps=3) as made:
        refuse_workers(made, "Pod is invalid: spec.containers[0].resources")
        made.run(5)
        assert sorted(made.pods) == ["digits-chief-0-0", "digits-ps-0-0", "digits-ps-1-0", "digits-ps-2-0"]


def test_without_refusals_all_are_made_about_as_fast_as_at_once() -> None:
    """A call takes 10 ms here, and CALLS_OF_A_JOB are under way: not much more than that many at a time take."""
    with world(100) as made:
        made.run(0.05 + 3 * 100 / CALLS_OF_A_JOB * 0.01)
        assert len(made.pods) == 101


def test_a_create_that_fails_for_a_moment_stops_the_rest_for_that_moment() -> None:
    with world(100) as made:
        failed = list[str]()

        def away(pod: Manifest) -> ClusterError | None:
            if made.loop.time() >= 5:
                return None
            failed.append(pod["metadata"]["name"])
            return ClusterError("failed calling webhook: connection refused")

        refuse(made, away)
        made.run(4.9)
        assert len(failed) < 20  # the chief and one worker at each try
        made.run(30)
        assert len(made.pods) == 101


def test_a_held_pod_of_a_refused_role_does_not_cause_repeated_plans() -> None:
    """A stranger has one name, and later a quota refuses the role: the pod may be tried again before the role may."""
    with world(4) as made:
        made.cluster.put(stranger("Pod", "digits-worker-3-0"))
        made.run(10)
        refuse_workers(made, "exceeded quota")
        done, looks = made.queue.done, 0

        def counted(key: JobKey) -> None:
            nonlocal looks
            looks += 1
            done(key)

        made.queue.done = counted  # type: ignore[method-assign]
        made.cluster.remove("Pod", "digits-worker-0-0")  # its replacement is refused
        made.run(60)
        assert looks < 60


def test_a_refusal_for_a_deleted_job_does_not_block_the_next_job_of_its_name() -> None:
    """It was deleted and applied again while a call for it was under way."""
    with world(1) as made:
        create, answered = made.cluster.create, asyncio.Event()

        async def refuses(manifest: Manifest) -> Manifest:
            if manifest["kind"] == "Pod" and labels.controller_uid(manifest) == builders.JOB_UID:
                await answered.wait()
                raise Refused("exceeded quota: small")
            return await create(manifest)

        made.cluster.create = refuses  # type: ignore[method-assign]
        made.run(1)
        made.cluster.remove(KIND, "digits")
        made.cluster.put(job_manifest(builders.job(workers=1, uid="applied-again")))
        made.run(0.2)
        answered.set()
        made.run(5)
        assert made.job.status["phase"] == "Pending"
        assert "Blocked" not in [one.reason for one in made.cluster.events]


def test_a_service_account_that_is_missing_is_said_within_seconds_and_asked_for_often() -> None:
    missing = 'pods "digits-chief-0-0" is forbidden: error looking up service account default/x: "x" not found'
    with world(2) as made:
        there: list[bool] = []
        refuse(made, lambda pod: None if there else ApiError(403, "Forbidden", missing))
        made.run(4)
        assert (made.job.status["reason"], missing in made.job.status["message"]) == ("CannotCreate", True)
        there.append(True)
        made.run(4)
        assert len(made.pods) == 3


def with_claim(*there: Manifest, retention: str = "Retain", **spec: Any) -> World:
    made = World(builders.claim_job(retention, **spec))
    for one in there:
        made.cluster.put(one)
    return made


@pytest.mark.parametrize("retention", ["Retain", "Delete"])
def test_a_claim_that_was_retained_is_used_by_the_next_job_of_its_name(retention: str) -> None:
    """Also by one with retention Delete, which does not own it then: its files are those of an earlier job."""
    earlier = shared.claim(builders.claim_job("Retain"))
    earlier["metadata"] |= {"uid": "earlier", "resourceVersion": "7"}
    with with_claim(earlier, retention=retention) as made:
        made.run(2)
        assert len(made.pods) == 3
        (claim,) = made.cluster.of_kind("PersistentVolumeClaim")
        assert (claim["metadata"]["uid"], labels.controller_uid(claim)) == ("earlier", None)


def test_a_claim_that_is_deleted_with_an_earlier_job_is_waited_for() -> None:
    earlier = shared.claim(builders.claim_job("Delete").model_copy(update={"metadata": builders.job(uid="b").metadata}))
    with with_claim({**earlier, "metadata": {**earlier["metadata"], "uid": "earlier", "resourceVersion": "7"}}) as made:
        made.run(20)
        assert made.pods == {}
        made.cluster.remove("PersistentVolumeClaim", "digits-checkpoints")
        made.run(2)
        assert len(made.pods) == 3
