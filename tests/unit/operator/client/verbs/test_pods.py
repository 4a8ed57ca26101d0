# SPDX-License-Identifier: Apache-2.0
"""Pods by task and attempt."""

import pytest

from dtjob.bad_input import BadInput
from dtjob.client.verbs.pods import in_order, newest, state_of
from tests.unit.operator.client.verbs.jobs import pod

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
