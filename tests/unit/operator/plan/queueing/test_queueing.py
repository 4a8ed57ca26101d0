# SPDX-License-Identifier: Apache-2.0
"""Queueing: what a job in a queue of Kueue does at each step of its life."""

from dataclasses import replace

import pytest

from dtjob.objects import kueue
from dtjob.plan.seen.workload import Kueue
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.queued import BY_ANOTHER, QUEUE, Story, condition, kinds, prebuilt, running

OTHER = {kueue.QUEUE: "team-b"}


def test_a_queued_job_makes_its_workload_and_nothing_else() -> None:
    story = Story(replicaSpecs={"chief": {"resources": {"requests": {"cpu": "1"}}}, "worker": {"replicas": 2}})
    assert kinds(story.look()) == ["make Workload"]
    story.settle()
    assert story.stands == ("Suspended", "Queued")
    assert (story.own("Suspended"), story.own("Admitted")) == (("True", "Queued"), ("False", "Pending"))
    assert "startTime" not in story.job.status
    assert [one["kind"] for one in story.children.objects] == [kueue.KIND]


def test_deadlines_do_not_count_while_a_job_waits_in_its_queue() -> None:
    story = Story(activeDeadlineSeconds=100, startDeadlineSeconds=50)
    story.settle()
    story.settle(at(86_400))
    assert story.stands == ("Suspended", "Queued")
    story.admit(at(86_400))
    story.settle(at(86_401))
    assert story.job.status["active"]["since"] == "2026-11-22T10:00:01Z"
    story.settle(at(86_440))
    assert story.stands == ("Pending", "WaitingForPods")
    story.settle(at(86_500))
    assert story.stands == ("Failed", "StartDeadlineExceeded")


def test_the_message_of_a_queued_job_has_kueues_message() -> None:
    story = Story()
    story.settle()
    story.say(condition("QuotaReserved", False, "Pending", "insufficient unused quota for cpu in flavor default"))
    story.settle()
    assert "Kueue says: insufficient unused quota for cpu" in story.job.status["message"]
    assert story.own("QuotaReserved") == ("False", "Pending")


def test_admitted_pods_go_where_their_flavour_is() -> None:
    story = running()
    entry = story.job.status["queue"]
    assert (entry["name"], entry["clusterQueue"]) == ("team-a", "research")
    for pod in story.pods:
        assert pod["spec"]["nodeSelector"] == {"pool": "spot"}
        assert {"key": "spot", "operator": "Exists"} in pod["spec"]["tolerations"]
        assert pod["metadata"]["labels"][kueue.LOCAL_QUEUE] == "team-a"
        assert pod["metadata"]["labels"][kueue.CLUSTER_QUEUE] == "research"
        assert pod["metadata"]["annotations"][kueue.WORKLOAD] == story.workload["metadata"]["name"]  # type: ignore[index]
    assert story.said("PodsReady") == ("True", "Started")
    assert story.own("Admitted") == ("True", "ByTest")
    assert [one.reason for one in story.events].count("Admitted") == 1


def test_the_placement_of_pods_is_in_the_status_before_they_are_created() -> None:
    story = Story()
    story.settle()
    story.admit(flavours={"cpu": "spot"})
    made = story.look()
    assert made.status["queue"]["podSets"]["worker"]["nodeSelector"] == {"pool": "spot"}
    del story.there["ResourceFlavor", "spot"]  # what is written counts from now on
    story.run()
    assert all(pod["spec"]["nodeSelector"] == {"pool": "spot"} for pod in story.pods)


def test_a_replaced_pod_gets_the_same_place() -> None:
    story = running()
    story.becomes("worker-0-0", builders.ended(1, at(60)))
    story.look(at(60))
    assert story.said("PodsReady") == ("False", "WaitForRecovery")
    story.settle(at(200))
    story.run(at(201))
    again = next(one for one in story.pods if one["metadata"]["name"] == "digits-worker-0-1")
    assert again["spec"]["nodeSelector"] == {"pool": "spot"}
    assert story.said("PodsReady") == ("True", "Recovered")


def test_an_evicted_job_saves_and_stops_before_its_quota_is_given_back() -> None:
    story = running()
    before = story.job.status["restarts"]
    story.evict()
    pods = [builders.deleting(one, at(100)) for one in story.pods]
    made = story.look(at(100))
    assert kinds(made) == ["delete Pod"] * 3
    assert [one.reason for one in story.events].count("Evicted") == 1
    assert story.job.status["message"].endswith("the pods that are left save and end")
    # They save: for as long as one of them has not ended, the quota is used.
    story.children = replace(story.children, objects=(*story.children.objects, *pods))
    story.settle(at(110))
    assert story.said("QuotaReserved") == ("True", "ByTest")
    story.lose(*(one["metadata"]["uid"] for one in pods))
    assert kinds(story.look(at(115))) == ["write Workload"]
    assert "admission" not in story.workload["status"]
    assert story.workload["status"]["accumulatedPastExecutionTimeSeconds"] == 115
    assert (story.said("QuotaReserved"), story.said("Admitted")) == (("False", "Pending"), ("False", "NoReservation"))
    assert story.said("Requeued") == ("True", "Preempted")
    story.settle(at(120))
    assert story.stands == ("Suspended", "Queued")
    assert "podSets" not in story.job.status["queue"]
    assert story.job.status["restarts"] == before  # never charged
    assert "since" not in story.job.status["active"]


def test_a_pod_that_is_lost_with_its_node_does_not_keep_the_quota() -> None:
    story = running()
    story.evict()
    lost = [builders.deleting(story.pods[0], at(100), 30)]
    others = tuple(one for one in story.children.objects if one["kind"] != "Pod")
    story.children = replace(story.children, objects=(*others, *lost))
    made = story.look(at(120))
    assert made.look_again_at == at(145)
    assert story.said("QuotaReserved") == ("True", "ByTest")
    story.settle(at(145))
    assert story.said("QuotaReserved") == ("False", "Pending")


@pytest.mark.parametrize("reason", ["Deactivated", "ClusterQueueStopped", "PodsReadyTimeout", "AdmissionCheck"])
def test_a_workload_evicted_for_another_reason_has_the_condition_requeued_false(reason: str) -> None:
    story = running()
    story.evict(reason, "because")
    story.settle(at(100))
    assert story.said("Requeued") == ("False", reason)


def test_a_deactivated_job_says_how_it_goes_on() -> None:
    story = running()
    story.put({**story.workload, "spec": {**story.workload["spec"], "active": False}})
    story.evict("Deactivated", "The workload is deactivated")
    story.settle(at(100))
    assert story.stands == ("Suspended", "Deactivated")
    assert "is deactivated: The workload is deactivated; the job is queued again" in story.job.status["message"]


def test_a_job_that_has_succeeded_says_so_when_its_last_pod_has_ended() -> None:
    story = running()
    story.ends("chief", now=at(100))
    story.settle(at(100))
    assert story.stands[0] == "Succeeded"
    assert story.said("Finished") is None  # its workers may end by themselves
    assert story.workload["status"]["reclaimablePods"] == [{"name": "chief", "count": 1}]
    story.settle(at(200))
    assert story.said("Finished") == ("True", "Succeeded")


def test_a_suspended_job_gives_its_place_up_and_queues_again() -> None:
    story = running()
    story.suspend(True)
    story.settle(at(100))
    assert (story.workload, story.stands) == (None, ("Suspended", "JobSuspended"))
    assert "queue" not in story.job.status
    story.label(**OTHER)  # it may be changed meanwhile
    story.suspend(False)
    story.settle(at(200))
    assert story.workload["spec"]["queueName"] == "team-b"
    assert story.stands == ("Suspended", "Queued")


def test_a_waiting_job_may_change_its_queue_and_leave_it() -> None:
    story = Story()
    story.settle()
    story.label(**OTHER)
    story.settle()
    assert story.workload["spec"]["queueName"] == "team-b"
    story.label()
    story.settle()
    assert (story.workload, len(story.pods)) == (None, 3)
    assert "queue" not in story.job.status


def test_a_running_job_keeps_its_queue() -> None:
    story = running()
    story.label(**OTHER)
    story.settle(at(10))
    assert story.own("QueueNameIgnored") == ("True", "JobRuns")
    assert (len(story.pods), story.job.status["queue"]["name"]) == (3, "team-a")
    story.label(**QUEUE)
    story.settle(at(20))
    assert story.own("QueueNameIgnored") == ("False", "QueueName")


def test_a_label_that_comes_to_a_running_job_does_nothing_until_it_is_suspended() -> None:
    story = Story({})
    story.run()
    story.label(**QUEUE)
    story.settle(at(10))
    assert (story.workload, len(story.pods)) == (None, 3)
    assert story.own("QueueNameIgnored") == ("True", "JobRuns")
    story.suspend(True)
    story.settle(at(20))
    story.suspend(False)
    story.settle(at(30))
    assert story.workload is not None
    assert story.pods == []
    assert story.own("QueueNameIgnored") == ("False", "QueueName")


def test_a_label_that_comes_before_the_first_status_of_a_job_with_pods_does_nothing() -> None:
    story = Story({})
    story.carry_out(story.plan(NOW), NOW)
    story.label(**QUEUE)
    story.settle(at(1))
    assert (story.workload, len(story.pods), story.stands[0]) == (None, 3, "Pending")


@pytest.mark.parametrize("queued", [False, True])
def test_an_ended_job_has_no_condition_about_its_next_start(queued: bool) -> None:
    story = running() if queued else Story({})
    story.run()
    story.label(**OTHER)
    story.settle(at(10))
    assert story.own("QueueNameIgnored") == ("True", "JobRuns")
    story.ends("chief", "worker", now=at(20))
    story.settle(at(20))
    assert story.stands == ("Succeeded", "Completed")
    assert story.own("QueueNameIgnored") == ("False", "JobEnded")


@pytest.mark.parametrize(
    ("state", "words"),
    [(Kueue.ABSENT, "this cluster has no Kueue (kueue.x-k8s.io/v1beta2)"), (Kueue.FORBIDDEN, "kueue.enabled")],
)
def test_a_queued_job_without_kueue_waits_and_says_so(state: Kueue, words: str) -> None:
    story = Story(kueue=state)
    story.settle()
    assert story.stands == ("Suspended", "NoKueue")
    assert words in story.job.status["message"]
    assert story.children.objects == ()
    story.children = replace(story.children, kueue=Kueue.THERE)
    story.settle()
    assert story.workload is not None


@pytest.mark.parametrize("state", [Kueue.ABSENT, Kueue.FORBIDDEN, Kueue.UNKNOWN])
def test_a_job_that_was_admitted_runs_on_without_kueue(state: Kueue) -> None:
    story = running()
    story.children = replace(story.children, kueue=state, objects=tuple(story.pods))
    assert [one for one in story.look(at(10)).actions if one.kind == "Pod"] == []  # type: ignore[union-attr]
    assert story.stands == ("Running", "AllTasksRunning")


def test_labels_mean_nothing_where_there_are_no_queues() -> None:
    story = Story(kueue=Kueue.IGNORED)
    story.run()
    assert (story.stands[0], story.workload) == ("Running", None)


def test_a_prebuilt_workload_is_adopted() -> None:
    story = Story({**QUEUE, kueue.PREBUILT: "theirs"})
    story.settle()
    assert story.stands == ("Suspended", "NoWorkload")
    assert story.workload is None
    story.there[kueue.KIND, "theirs"] = prebuilt()
    story.settle(at(10))
    assert story.workload["metadata"]["ownerReferences"][0]["uid"] == builders.JOB_UID
    story.admit(at(20))
    story.run(at(21))
    assert story.stands[0] == "Running"
    story.suspend(True)
    story.settle(at(30))
    assert story.workload is not None  # it is not ours to delete


def test_a_prebuilt_workload_of_another_owner_is_left_alone() -> None:
    story = Story({**QUEUE, kueue.PREBUILT: "theirs"})
    story.there[kueue.KIND, "theirs"] = prebuilt(ownerReferences=BY_ANOTHER)
    story.settle()
    assert story.job.status["message"].startswith(f"label {kueue.PREBUILT}: Workload theirs is another's")


def test_a_finished_workload_of_a_job_that_is_not_holds_it() -> None:
    story = running()
    story.say(condition("Finished", True, "OutOfSync", "by somebody"))
    story.settle(at(10))
    assert story.stands == ("Suspended", "WorkloadFinished")
    assert story.pods == []
    assert "delete that Workload" in story.job.status["message"]


def test_a_node_selector_of_kueue_that_contradicts_the_template_fails_the_workload() -> None:
    story = Story(replicaSpecs={"chief": {}, "worker": {"template": {"spec": {"nodeSelector": {"pool": "large"}}}}})
    story.settle()
    story.admit(flavours={"cpu": "spot"})
    story.settle()
    assert story.said("Finished") == ("True", "FailedToStart")
    assert "Kueue gives replicaSpecs.worker pool=spot, and it is large already" in story.job.status["message"]


def test_a_job_that_changes_while_it_waits_keeps_its_place() -> None:
    story = Story()
    story.settle()
    before = story.workload["metadata"]["uid"]
    story.change(replicas=5)
    story.settle()
    assert story.workload["metadata"]["uid"] == before
    assert [one["count"] for one in story.workload["spec"]["podSets"]] == [1, 5]


def test_an_eviction_ends_an_evaluator_that_is_still_at_work() -> None:
    story = running(evaluator=True)
    story.ends("chief", "worker", now=at(100))
    story.settle(at(200))
    assert (story.stands[0], story.said("Finished")) == ("Succeeded", None)
    story.evict()
    story.settle(at(300))
    assert story.said("Finished") == ("True", "Succeeded")
    assert story.own("EvaluationGivenUp") == ("True", "EvaluationGivenUp")
    assert story.look(at(310)).look_again_at is None, "there is nothing to wait for"
    for seconds in (310, 5000):
        story.settle(at(seconds))
        assert not [name for name in story.tasks if "evaluator" in name]


def test_an_evicted_evaluator_is_not_made_again_while_another_pod_of_the_job_ends() -> None:
    story = running(evaluator=True)
    story.ends("chief", now=at(100))
    story.settle(at(110))
    story.evict()
    saving = next(builders.deleting(one, at(120)) for one in story.pods if "worker-0" in one["metadata"]["name"])
    story.look(at(120))
    story.children = replace(story.children, objects=(*story.children.objects, saving))
    assert builders.pods_made(story.look(at(121))) == []
