# SPDX-License-Identifier: Apache-2.0
"""Pods by task and attempt, and their Events."""

import pytest

from dtjob.bad_input import BadInput
from dtjob.client.cluster import Cluster
from dtjob.client.verbs.pods import events, in_order, newest, state_of
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import event, pod

PODS = [pod("worker-10"), pod("evaluator-0"), pod("worker-2", 1), pod("worker-2"), pod("chief-0"), pod("ps-0")]


def names(pods) -> list[str]:
    return [one["metadata"]["uid"] for one in pods]


def test_roles_indexes_and_attempts_are_in_order() -> None:
    assert names(in_order(PODS)) == ["chief-0-0", "worker-2-0", "worker-2-1", "worker-10-0", "ps-0-0", "evaluator-0-0"]
    assert names(newest(in_order(PODS, "worker"))) == ["worker-2-1", "worker-10-0"]
    assert names(in_order(PODS, "worker-2")) == ["worker-2-0", "worker-2-1"]


def test_a_text_that_is_no_task_is_refused() -> None:
    with pytest.raises(BadInput, match="--task: master is no task"):
        in_order(PODS, "master")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"running": {}}, "running"),
        ({"terminated": {"exitCode": 0}}, "finished"),
        ({"terminated": {"exitCode": 137}}, "failed (137)"),
        ({"waiting": {"reason": "ImagePullBackOff"}}, "ImagePullBackOff"),
    ],
)
def test_the_state_is_that_of_the_training_container(state: dict[str, dict[str, object]], said: str) -> None:
    assert state_of(pod("worker-0", state=state)) == said
    assert state_of(pod("worker-0", state=state, deletionTimestamp="now")) == "ending"


def test_events_of_others_are_left_out_and_the_newest_is_last(server: ApiServer, cluster: Cluster) -> None:
    pods = event("digits-worker-0-1", "2026-11-23T11:59:00Z")
    own = event("digits", "2026-11-23T11:58:00Z", "DistributedTrainingJob", "u")
    others = [event("digits-2-worker-0-0", "2026-11-23T11:59:00Z"), event("digits-x", "2026-11-23T11:59:00Z")]
    server.answer("GET /api/v1/namespaces/team/events", {"items": [pods, own, *others], "metadata": {}})
    assert events(cluster, "digits") == [own, pods]
