# SPDX-License-Identifier: Apache-2.0
"""A program that fails twice in the same way, with pods' statuses as kubelets write them: the log's last lines where
the supervisor saw it fail, and what it had left where the kernel killed it with its container."""

import json
from typing import Any

from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.unit.operator.builders import last_line
from tools.cluster.rest import Api, Object

AT_ONCE = {"backoff": {"initialSeconds": 0, "maxSeconds": 0}}
MISSING = "ModuleNotFoundError: No module named 'foo'"


def apply(api: Api, namespace: str, name: str, strategy: str = "Mirrored") -> None:
    """A job whose chief runs."""
    api.create("dtjobs", namespace, job(name, strategy, failurePolicy=AT_ONCE))
    wait_phase(api, namespace, "Running", name)


def fail(api: Api, namespace: str, kubelet: Kubelet, pod: str, code: int = 1, **end: Any) -> None:
    """The pod's training container fails, once it runs."""
    api.wait_for("pods", namespace, pod, lambda found: found and found["status"].get("phase") == "Running")
    kubelet.exit(pod, code, **end)


def runs_again(status: Object) -> bool:
    """Whether a job has been restarted once, and that was seen to run."""
    return bool(status["phase"] == "Running" and status.get("restarts", {}).get("total") == 1)


def events(api: Api, namespace: str, job: str) -> list[str]:
    found: list[Object] = api.list("events", namespace)
    return [one["note"] if "note" in one else one["message"] for one in found if of(one) == job]


def of(event: Object) -> str:
    return str((event.get("regarding") or event.get("involvedObject") or {}).get("name"))


def test_a_program_that_fails_twice_alike_fails_the_job_with_its_exception(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """All of a group fail at first, which is one failure."""
    apply(api, namespace, "typo", "MultiWorkerMirrored")
    for pod in ("typo-chief-0-0", "typo-worker-0-0", "typo-worker-1-0", "typo-worker-1-1"):
        fail(api, namespace, auto_kubelet, pod, message=last_line(exception=MISSING))
    status = wait_phase(api, namespace, "Failed", "typo")["status"]
    assert status["reason"] == "ProgramFailed"
    assert status["lastFailure"]["task"] == "worker-1"
    assert status["lastFailure"]["exception"] == {"type": "ModuleNotFoundError", "message": "No module named 'foo'"}
    assert status["lastFailure"]["beforeFirstStep"] is True
    assert "Traceback" in status["lastFailure"]["logTail"]
    assert status["restarts"] == {"total": 1, "causes": {"Error": 1}}
    (failed,) = (one for one in status["conditions"] if one["type"] == "Failed")
    assert (failed["status"], failed["reason"], failed["message"]) == ("True", "ProgramFailed", status["message"])
    api.wait("events", namespace, lambda _: status["message"] in events(api, namespace, "typo"))


def test_a_program_out_of_memory_twice_before_its_first_step_fails_the_job(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """The kernel kills all of a container, so that its supervisor tells nothing at the end."""
    apply(api, namespace, "large")
    for attempt in range(2):
        left = json.dumps({"task": "chief-0", "attempt": attempt, "stepped": False})
        fail(api, namespace, auto_kubelet, f"large-chief-0-{attempt}", 137, reason="OOMKilled", message=left)
    status = wait_phase(api, namespace, "Failed", "large")["status"]
    assert status["reason"] == "ProgramFailed"
    assert "out of memory (OOMKilled; chief-0, exit code 137); give its container more memory" in status["message"]
    assert "logTail" not in status["lastFailure"]


def test_a_disruption_is_not_counted_as_a_second_failure_and_steps_are_remembered(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """After a step an exit code without an exception uses the budget; an exception counts, as it did before a step."""
    apply(api, namespace, "drained")
    apply(api, namespace, "stepped")
    missing = last_line(exception=MISSING, location="train.py:1")
    fail(api, namespace, auto_kubelet, "drained-chief-0-0", message=missing)
    fail(api, namespace, auto_kubelet, "stepped-chief-0-0", message=last_line(exception=MISSING, stepped=True))
    # A pod that has gone before the operator saw it run is no attempt that ended: it is made again under its name.
    api.wait_for("dtjobs", namespace, "drained", lambda found: found and runs_again(found["status"]))
    auto_kubelet.drain("drained-chief-0-1")
    for attempt in (1, 2, 3):
        fail(api, namespace, auto_kubelet, f"stepped-chief-0-{attempt}", 3, message=last_line(3))
    for name, last in (("drained", 2), ("stepped", 4)):
        pod = f"{name}-chief-0-{last}"
        api.wait_for("pods", namespace, pod, lambda found: found and found["status"].get("phase") == "Running")
        status = wait_phase(api, namespace, "Running", name)["status"]
        assert ("firstStepTime" in status) is (name == "stepped")
    assert status["restarts"] == {"total": 4, "causes": {"Error": 4}}
    typo = last_line(exception=MISSING, location="train.py:8", stepped=True, step=64)
    for attempt in (4, 5):
        fail(api, namespace, auto_kubelet, f"stepped-chief-0-{attempt}", message=typo)
    fail(api, namespace, auto_kubelet, "drained-chief-0-2", message=missing)
    for name in ("drained", "stepped"):
        assert wait_phase(api, namespace, "Failed", name)["status"]["reason"] == "ProgramFailed"
    assert ": train.py:8: ModuleNotFoundError: " in api.get("dtjobs", namespace, "stepped")["status"]["message"]
