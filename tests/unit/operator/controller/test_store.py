# SPDX-License-Identifier: Apache-2.0
"""The store: what late, doubled and lost watch events leave in it."""

import gc
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.api.status.internal import Internal
from dtjob.controller import store as store_module
from dtjob.controller.pace.backoff import REPAIRS_AT_ONCE
from dtjob.controller.store import Memory, Store
from dtjob.objects import gangs, labels, shared
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import ObservedPod, Silence, view_tasks
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW
from tests.unit.operator.simulation.operator import job_manifest

KEY = ("default", "digits")
JOB = builders.job()


def versioned(manifest: Manifest, version: int, **metadata: Any) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(version), **metadata}}


POD = versioned(builders.pod(JOB, "chief-0"), 10, uid="pod-a")


def running(version: int) -> Manifest:
    return {**versioned(POD, version), "status": builders.running()}


SUCCESSOR = versioned(POD, 20, uid="pod-b")


def names(store: Store) -> list[str]:
    return [one["metadata"]["uid"] for one in store.children(KEY).objects]


def test_a_version_that_is_not_newer_changes_nothing():
    store = Store()
    assert store.apply(POD) == KEY
    assert store.apply(POD) is None
    assert store.apply(running(9)) is None, "versions are numbers"
    assert store.apply(running(11)) == KEY


def test_pods_that_have_ended_are_known_of_jobs_that_go_on():
    store, job = Store(), versioned(job_manifest(JOB), 5)
    store.apply(job)
    store.apply(running(11))
    assert not store.has_ended_pods(KEY)
    store.apply({**versioned(POD, 12), "status": builders.ended(137)})
    assert store.has_ended_pods(KEY)
    store.apply({**versioned(job, 13), "status": {"phase": "Failed"}})
    assert not store.has_ended_pods(KEY)
    assert not store.has_ended_pods(("default", "nobody"))


def test_each_version_of_a_job_is_read_once_while_the_job_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every job is read each 5 s to find its supervisors: 1,000 jobs held the event loop for 70 ms."""
    reads, read = list[str](), store_module.stored_job

    def counted(manifest: Manifest) -> Job:
        reads.append(manifest["metadata"]["resourceVersion"])
        return read(manifest)

    monkeypatch.setattr(store_module, "stored_job", counted)
    store, job = Store(), versioned(job_manifest(JOB), 5)
    for version, phase in ((5, "Running"), (6, "Restarting"), (7, "Failed")):
        store.apply({**versioned(job, version), "status": {"phase": phase}})
        assert {store.read_job(KEY).status["phase"] for _ in range(2)} == {phase}
    assert reads == ["5", "6", "7", "7"], "what is read of an ended job is not kept in memory"


def test_a_newer_version_without_a_change_that_is_read_makes_no_job_due():
    store = Store()
    store.apply(running(11))
    noted = running(12)
    noted["metadata"]["annotations"] = {"seen-by": "somebody"}
    noted["status"]["containerStatuses"][0]["imageID"] = "sha256:5f"
    assert store.apply(noted) is None
    assert store.apply(running(11)) is None
    (kept,) = store.children(KEY).objects
    assert kept["metadata"]["resourceVersion"] == "12"


def test_a_late_event_of_an_earlier_object_does_not_hide_its_successor():
    """Our create has answered, and then the watch tells of what stood under the name before."""
    store = Store()
    store.apply(SUCCESSOR)
    assert store.apply(versioned(POD, 15)) is None
    assert store.remove(versioned(POD, 16)) is None
    assert names(store) == ["pod-b"]


def test_a_late_event_does_not_bring_a_removed_object_back():
    store = Store()
    store.apply(POD)
    assert store.remove(versioned(POD, 12)) == KEY
    assert store.apply(versioned(POD, 11)) is None
    assert names(store) == []


def test_a_list_brings_back_what_was_taken_for_gone():
    """As by a proxy's 404. A list from before the deletion that a watch told of does not."""
    store = Store()
    store.apply(POD)
    store.remove(POD)
    assert store.apply(POD) is None
    assert store.apply(POD, listed_at=13) == KEY
    assert not store.is_gone("pod-a")
    store.remove(versioned(POD, 15))
    assert store.apply(POD, listed_at=14) is None
    assert names(store) == []


def test_a_pod_that_comes_back_with_its_label_is_seen_again():
    """A watch by label says DELETED when the label is removed, and ADDED when it is there again."""
    store = Store()
    store.apply(POD)
    store.remove(versioned(POD, 12))
    assert store.apply(versioned(POD, 13)) == KEY
    assert names(store) == ["pod-a"]


def test_a_pod_that_a_list_did_not_have_is_seen_again_where_it_is_newer_than_the_list():
    store = Store()
    store.apply(POD)
    store.prune("Pod", set(), 50)
    assert store.apply(versioned(POD, 50)) is None
    assert store.apply(versioned(POD, 51)) == KEY


def test_a_changed_label_moves_no_pod_to_another_job():
    store = Store()
    store.apply(POD)
    assert store.apply(versioned(POD, 11, labels={labels.JOB_NAME: "another"})) == KEY
    assert names(store) == ["pod-a"]
    assert store.children(("default", "another")).objects == ()


def test_an_orphans_job_is_the_one_of_its_label():
    store = Store()
    assert store.apply(versioned(POD, 10, ownerReferences=[])) == KEY
    assert store.apply(versioned(POD, 11, uid="nobodys", ownerReferences=[], labels={})) is None


def test_a_deletion_that_arrives_before_the_creation_counts():
    store = Store()
    assert store.remove(POD) is None
    assert store.apply(POD) is None


def test_tombstones_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store_module, "TOMBSTONES", 100)
    store = Store()
    store.remove(POD)
    for number in range(100):
        store.remove(versioned(POD, 30, uid=f"other-{number}"))
    assert store.apply(POD) == KEY


def test_a_list_removes_what_is_older_and_missing_and_keeps_what_is_newer():
    store = Store()
    store.apply(POD)
    worker = versioned(builders.pod(JOB, "worker-0"), 60, uid="created-meanwhile")
    store.apply(worker)
    assert store.prune("Pod", set(), 50) == {KEY}
    assert names(store) == ["created-meanwhile"]
    assert store.prune("Pod", {"created-meanwhile"}, 70) == set()


@pytest.mark.parametrize("listed", [("Service", set(), 50), ("Pod", set(), 50, "elsewhere")])
def test_a_list_of_one_kind_or_namespace_leaves_the_others(listed: Any):
    store = Store()
    store.apply(POD)
    assert store.prune(*listed) == set()
    assert names(store) == ["pod-a"]
    assert store.prune("Pod", set(), 50, "default") == {KEY}


@pytest.mark.parametrize("heard", [True, False])
def test_a_job_has_no_reports_or_problems_of_an_earlier_job_of_its_name(heard: bool):
    """By a call that was under way when the earlier one's deletion was heard of, or where that was missed."""
    store, job = Store(), versioned(job_manifest(JOB), 5)
    store.apply(job)
    if heard:
        store.remove(versioned(job, 9))
    store.set_problem(KEY, "Pod/x", "exceeded quota")
    store.set_report(KEY, "chief-0", {"step": 7})
    store.apply(versioned(job, 12, uid="another"))
    children = store.children(KEY)
    assert (children.reports, children.problems) == ({}, {})


def test_a_problem_is_news_once():
    store = Store()
    assert store.set_problem(KEY, "Pod/x", "exceeded quota")
    assert not store.set_problem(KEY, "Pod/x", "exceeded quota")
    assert store.set_problem(KEY, "Pod/x", None)
    assert not store.set_problem(KEY, "Pod/x", None)
    store.set_problem(KEY, "Pod/x", "exceeded quota")
    assert store.keep_problems(KEY, set())
    assert store.children(KEY).problems == {}


def test_a_pod_without_the_label_by_which_it_is_watched_is_not_stored():
    """A create of ours meets such a pod."""
    store, unlabelled = Store(), versioned(POD, 10, labels={})
    assert (store.apply(unlabelled), store.remove(unlabelled), names(store)) == (None, None, [])


def test_a_silence_is_news_until_it_is_known_and_ends_with_a_report():
    store = Store()
    first = Silence("pod-a", "10.0.0.7:2223", builders.NOW, "NoAnswer", "no answer")
    assert store.set_silence(KEY, "chief-0", first)
    assert not store.set_silence(KEY, "chief-0", replace(first, since=builders.at(60)))
    assert store.set_silence(KEY, "chief-0", replace(first, since=builders.at(60), reason="ConnectTimeout"))
    assert store.children(KEY).silences["chief-0"].since == builders.NOW
    successor = replace(first, pod_uid="pod-b", since=builders.at(90))
    assert store.set_silence(KEY, "chief-0", successor)
    assert store.children(KEY).silences["chief-0"] == successor
    assert store.set_report(KEY, "chief-0", {"step": 1})
    assert store.children(KEY).silences == {}
    assert not store.set_report(KEY, "chief-0", {"step": 1})


def test_jobs_that_go_on_are_counted():
    store = Store()
    job = versioned(job_manifest(JOB), 1)
    assert store.jobs_going_on() == 0
    store.apply(job)
    store.apply({**versioned(job, 2), "status": {"phase": "Running"}})
    assert store.jobs_going_on() == 1
    store.apply({**versioned(job, 3), "status": {"phase": "Succeeded"}})
    assert store.jobs_going_on() == 0
    store.apply(versioned(job, 4, uid="applied-again"))
    assert store.jobs_going_on() == 1
    store.remove(versioned(job, 5, uid="applied-again"))
    assert store.jobs_going_on() == 0


def test_a_pod_that_was_replaced_or_removed_is_let_go_of_at_once():
    """A full search for garbage comes after thousands of them."""

    def left() -> list[str]:
        found = (one["metadata"] for one in gc.get_objects() if type(one) is ObservedPod)
        return [one["resourceVersion"] for one in found if one["uid"] == "pod-to-go"]

    store = Store()
    gc.disable()
    try:
        for version, address in ((11, "10.0.0.1"), (12, "10.0.0.2"), (13, "10.0.0.2")):
            pod = versioned(running(version), version, uid="pod-to-go")
            pod["status"] = {**pod["status"], "podIP": address}
            store.apply(pod)
            view_tasks(JOB, store.children(KEY), Internal(), builders.NOW)
            assert left() == [str(version)]
        store.remove(versioned(POD, 14, uid="pod-to-go"))
        assert left() == []
    finally:
        gc.enable()


def test_the_store_keeps_nothing_of_a_deleted_job_once_its_pods_are_gone():
    """Its ConfigMap is in no list and no watch; hundreds of jobs a day would each leave one behind."""
    store = Store()
    job = versioned(job_manifest(JOB), 1)
    config_map = builders.stored(shared.config_map(JOB))
    for one in (job, POD, config_map):
        store.apply(one)
    store.set_report(KEY, "chief-0", {"step": 7})
    store.remove(versioned(job, 20))
    assert len(store.children(KEY).objects) == 2, "its pod is still there, and a job of its name must wait for it"
    store.remove(versioned(POD, 21))
    assert (store._children, store._memories) == ({}, {})


def test_a_deleted_pod_group_is_not_known_any_more_and_may_still_be_there():
    """It may stay until its pods are gone: what is made under its name waits for that."""
    made = gangs.pod_group(builders.job(scheduling={"gang": {"provider": "Kubernetes"}}))
    assert made is not None
    store, group = Store(), versioned(made, 50, uid="group")
    store.apply(group)
    for uid, left in (("an earlier one", ["group"]), ("group", [])):
        store.forget_deleted(KEY, group["kind"], group["metadata"]["name"], uid, gone=False)
        assert names(store) == left
    assert not store.is_gone("group")
    assert store.apply(versioned(group, 51)) == KEY


def job(uid: str, version: int) -> Manifest:
    made = job_manifest(builders.job(uid=uid))
    made["metadata"]["resourceVersion"] = str(version)
    return made


def remembering() -> Store:
    """A job of which something is remembered."""
    store = Store()
    store.apply(job("first", 10))
    store.set_report(KEY, "chief-0", {"step": 5})
    store.set_problem(KEY, "Pod/digits-chief-0-0", "quota")
    memory = store.memory(KEY)
    memory.made_for = "first"
    memory.holds.hold("Pod/digits-chief-0-0", 0.0)
    for _ in range(REPAIRS_AT_ONCE):
        memory.repairs.note("first", NOW)
    return store


def test_an_event_of_the_job_itself_takes_nothing_away() -> None:
    store = remembering()
    store.apply(job("first", 11))
    assert store.memory(KEY).holds.of("Pod/digits-chief-0-0").until > 1.0
    assert store.children(KEY).reports == {"chief-0": {"step": 5}}


@pytest.mark.parametrize("how", ["it is deleted", "another has its name", "the reconciler forgets it"])
def test_the_memory_of_a_job_is_dropped_at_once(how: str) -> None:
    store = remembering()
    if how == "it is deleted":
        store.remove(job("first", 12))
    elif how == "another has its name":
        store.apply(job("second", 12))
    else:
        store.forget(KEY)
    memory = store.memory(KEY)
    assert memory == Memory(holds=memory.holds, repairs=memory.repairs)
    assert memory.repairs.wait("first", NOW) == timedelta()
    assert store.memory(KEY).holds.next_try(0.0) is None


def test_questions_about_a_deleted_job_leave_no_memory_of_it() -> None:
    store = Store()
    store.forget_report(KEY, "chief-0")
    store.set_problem(KEY, "Pod/digits-chief-0-0", None)
    assert store.children(KEY).problems == {}
    assert store._memories == {}
