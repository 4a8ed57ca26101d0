# SPDX-License-Identifier: Apache-2.0
"""Stalls on a real API server, with pods' statuses as kubelets write them and reports as supervisors give them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_progress import ServedStatus
from tests.unit.operator import builders
from tools.cluster.rest import Api, Object

POLICY = {"stallTimeoutSeconds": 600, "backoff": {"initialSeconds": 0, "maxSeconds": 0}}


@pytest.fixture
def served() -> Iterator[ServedStatus]:
    server = ServedStatus()
    yield server
    server.close()


def stall(kubelet: Kubelet, pod: str, straggler: str, behind: str = "in its data function") -> None:
    """The pod's supervisor ends its container over a stall."""
    end = builders.stalled(straggler, behind)["containerStatuses"][0]["state"]["terminated"]
    kubelet.exit(pod, end["exitCode"], message=end["message"])


def is_running(found: Object | None) -> bool:
    return found is not None and found["status"].get("phase") == "Running"


def has_restarted(times: int) -> Any:
    return lambda found: found["status"].get("restarts", {}).get("total") == times


def notes(api: Api, namespace: str) -> list[str]:
    return [one["note"] if "note" in one else one["message"] for one in api.list("events", namespace)]


def test_a_stall_is_counted_and_named_and_its_pod_replaced(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job(failurePolicy={**POLICY, "maxRestartsWithoutProgress": 1}))
    made = api.wait_for("pods", namespace, "digits-worker-1-0", is_running)
    assert made is not None
    told = {one["name"]: one.get("value") for one in made["spec"]["containers"][0]["env"]}
    assert told["DTJOB_STALL_TIMEOUT_SECONDS"] == "600"
    stall(auto_kubelet, "digits-worker-1-0", "worker-1")
    api.wait_for("pods", namespace, "digits-worker-1-1", is_running)
    status = wait_phase(api, namespace, "Running")["status"]
    assert status["restarts"] == {"total": 1, "causes": {"Stalled": 1}}
    assert (status["internal"]["incident"].get("charged", 0), status["internal"]["attempts"]["exceptions"]) == (
        1,
        {"worker-1": 1},
    )
    sentence = "worker-1 stalled after step 120, in its data function (exit code 77)"
    assert status["lastFailure"]["task"] == "worker-1"
    assert status["lastFailure"]["cause"] == "Stalled"
    assert "digits.py" in status["lastFailure"]["logTail"]
    api.wait("events", namespace, lambda _: any(note.startswith(sentence) for note in notes(api, namespace)))
    stall(auto_kubelet, "digits-worker-1-1", "worker-1")
    status = wait_phase(api, namespace, "Failed")["status"]
    assert status["message"].startswith(sentence), "one more than maxRestartsWithoutProgress"


def test_a_rule_ends_a_job_over_its_first_stall(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    rules = [{"action": "FailJob", "onReasons": ["Stalled"]}]
    api.create("dtjobs", namespace, job(strategy="Mirrored", failurePolicy={**POLICY, "rules": rules}))
    api.wait_for("pods", namespace, "digits-chief-0-0", is_running)
    stall(auto_kubelet, "digits-chief-0-0", "chief-0")
    status = wait_phase(api, namespace, "Failed")["status"]
    assert status["reason"] == "PodFailurePolicy"
    assert "failurePolicy.rules[0] (FailJob) matches reason Stalled" in status["message"]


def test_a_silent_running_task_that_the_chief_reports_is_replaced(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet, served: ServedStatus
) -> None:
    """And not by anybody's silence: of all three supervisors only the chief's is ever read."""
    api.create("dtjobs", namespace, job(network={"statusPort": served.port}, failurePolicy=POLICY))
    uid = api.get("dtjobs", namespace, "digits")["metadata"]["uid"]
    served.status = {"jobUid": uid, "attempt": 0, "state": "waiting"}
    for pod in ("digits-worker-0-0", "digits-worker-1-0"):
        api.wait_for("pods", namespace, pod, lambda found: found is not None)
        kubelet.run(pod)
    kubelet.run("digits-chief-0-0", address="127.0.0.1")
    served.wait_taken()
    assert api.get("dtjobs", namespace, "digits")["status"].get("restarts", {}).get("total", 0) == 0
    served.status = {**served.status, "silent": {"worker-1": 0}}
    api.wait_for("pods", namespace, "digits-worker-1-1", lambda found: found is not None)
    found = api.wait_for("dtjobs", namespace, "digits", has_restarted(1))
    assert found is not None
    assert found["status"]["restarts"]["causes"] == {"Stalled": 1}
    assert found["status"]["lastFailure"]["pod"] == "digits-worker-1-0"
    kubelet.run("digits-worker-1-1")
    served.wait_taken()
    assert has_restarted(1)(api.get("dtjobs", namespace, "digits")), "what was said of an earlier attempt is over"
