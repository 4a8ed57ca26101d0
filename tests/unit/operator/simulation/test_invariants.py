# SPDX-License-Identifier: Apache-2.0
"""What the checks let pass of a job, a status or a PodGroup that is gone, and what they find."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from dtjob.api.job import KIND
from dtjob.api.spec.scheduling import GangProvider
from dtjob.objects import gangs, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event
from tests.unit.operator import builders
from tests.unit.operator.simulation.api import copied
from tests.unit.operator.simulation.invariants import HEARD_WITHIN
from tests.unit.operator.simulation.life.stage import SHARED_CLAIM
from tests.unit.operator.simulation.operator import World

POD_GROUP = gangs.KINDS[GangProvider.KUBERNETES]
POD = "digits-worker-1-0"
LATER = HEARD_WITHIN + timedelta(seconds=0.01)


@pytest.fixture
def world() -> Iterator[World]:
    """A job in a gang, with its pods."""
    with World(builders.job(scheduling={"gang": {"provider": "Kubernetes"}})) as world:
        world.run(1)
        yield world


@pytest.fixture
def sharing() -> Iterator[World]:
    """Two jobs that keep their checkpoints in one claim, each in a directory of its own, with their pods."""
    storage = {"volume": {"persistentVolumeClaim": {"claimName": SHARED_CLAIM}}}
    jobs = [
        builders.job(name=name, uid=name, checkpoint={"storage": {**storage, "subPath": name}}, failurePolicy={})
        for name in ("digits", "other")
    ]
    with World(jobs[0], strict=True) as world:
        world.apply(jobs[1])
        world.run(1)
        yield world


def create(world: World, member: Manifest, later: timedelta = timedelta(0)) -> None:
    """The check of a create after so long."""
    world.cluster.rules.check_create(member, world.now() + later)


def touch(world: World, pod: Manifest, later: timedelta = timedelta(0)) -> None:
    """The check of a deletion after so long."""
    world.cluster.rules.check_touch(pod, world.now() + later)


def without_pod(world: World) -> Manifest:
    """A member that is to be made."""
    member = world.pods[POD]
    world.cluster.remove("Pod", POD)
    return member


def test_a_member_may_be_made_until_the_end_of_its_group_is_heard_of(world: World) -> None:
    member = without_pod(world)
    world.cluster.remove(POD_GROUP, "digits")
    create(world, member)
    with pytest.raises(AssertionError, match="is made before its gang"):
        create(world, member, LATER)


def test_a_lost_watch_hides_the_end_of_a_group_until_a_list(world: World) -> None:
    member = without_pod(world)
    world.lose_watch()
    world.cluster.remove(POD_GROUP, "digits")
    create(world, member, LATER)
    world.watch_again()
    with pytest.raises(AssertionError, match="is made before its gang"):
        create(world, member, LATER)


def test_the_operator_knows_at_once_that_it_has_deleted_a_group(world: World) -> None:
    member, group = without_pod(world), world.cluster.objects[POD_GROUP, "digits"]
    world.loop.run_until_complete(world.cluster.delete(POD_GROUP, "default", "digits", group["metadata"]["uid"]))
    with pytest.raises(AssertionError, match="is made before its gang"):
        create(world, member)


def test_the_group_of_an_earlier_job_does_not_count_for_a_new_one(world: World) -> None:
    member = without_pod(world)
    world.cluster.remove(KIND, "digits")
    world.cluster.remove(POD_GROUP, "digits")
    world.apply(builders.job(uid="again"))
    member["metadata"]["ownerReferences"][0]["uid"] = "again"
    with pytest.raises(AssertionError, match="is made before its gang"):
        create(world, member)


def test_a_pod_of_a_job_that_is_gone_may_be_touched_until_that_is_heard_of(world: World) -> None:
    pod, name = world.pods[POD], POD.removesuffix("-0")
    attempts = builders.remembered({name.removeprefix("digits-"): 1})
    world.cluster.change(KIND, "digits", lambda one: one["status"].update(attempts))
    world.cluster.remove(KIND, "digits")
    touch(world, pod)
    with pytest.raises(AssertionError, match="is of a job that is gone for"):
        touch(world, pod, LATER)


def test_a_job_that_is_gone_still_needs_its_current_pods(world: World) -> None:
    world.cluster.remove(KIND, "digits")
    with pytest.raises(AssertionError, match="is the current attempt"):
        touch(world, world.pods[POD])


def test_a_pod_of_no_job_is_not_ours(world: World) -> None:
    world.cluster.remove(KIND, "digits")
    other = world.cluster.put(builders.stranger("Pod", "other"))
    with pytest.raises(AssertionError, match="other is not ours"):
        touch(world, other)


def test_a_pod_may_be_made_that_was_written_ahead_just_before_the_status_was_forged(world: World) -> None:
    member, job = without_pod(world), world.cluster.objects[KIND, "digits"]
    world.cluster.rules.is_forged(job["metadata"]["uid"], job["status"], world.now())
    world.cluster.change(KIND, "digits", lambda one: one.update(status={"internal": {"attempts": {"others": 1}}}))
    create(world, member)
    with pytest.raises(AssertionError, match="is not written ahead"):
        create(world, member, LATER)


def test_a_pod_is_not_made_while_an_earlier_one_of_its_task_lives(world: World) -> None:
    again = copied(world.pods[POD])
    again["metadata"]["labels"][labels.ATTEMPT] = "1"
    again["metadata"]["name"] = POD.removesuffix("0") + "1"
    attempts = builders.remembered({"worker-1": 1})
    world.cluster.change(KIND, "digits", lambda one: one["status"].update(attempts))
    world.cluster.change("Pod", POD, lambda one: one["metadata"]["labels"].pop(labels.SERVING))
    with pytest.raises(AssertionError, match="lives on beside its successor"):
        create(world, again)
    world.cluster.change("Pod", POD, lambda one: one.update(status=builders.running()))
    world.cluster.ask_to_delete("Pod", POD)
    create(world, again)


def test_a_pod_mounts_no_other_directory_of_a_shared_claim_than_its_job_names(sharing: World) -> None:
    chief = sharing.pods["other-chief-0-0"]
    sharing.cluster.remove("Pod", "other-chief-0-0")
    create(sharing, chief)
    (mount,) = (one for one in chief["spec"]["containers"][0]["volumeMounts"] if one["name"] == "checkpoints")
    del mount["subPath"]
    with pytest.raises(AssertionError, match="its job names"):
        create(sharing, chief)


def test_a_promise_is_not_kept_by_the_checkpoint_of_another_job_on_the_claim(sharing: World) -> None:
    rules = sharing.cluster.rules
    rules.saved[SHARED_CLAIM + ":digits"] = 50
    first, other = (sharing.cluster.objects[KIND, name] for name in ("digits", "other"))
    promise = Event("Warning", "Restarting", "training goes on from the checkpoint at step 50 or a later one")
    rules.check_event(first, promise)
    with pytest.raises(AssertionError, match="nothing holds that"):
        rules.check_event(other, promise)
