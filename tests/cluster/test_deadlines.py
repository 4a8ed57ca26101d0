# SPDX-License-Identifier: Apache-2.0
"""Deadlines, and how long a job stays after its end, against a real API server."""

import json
from datetime import UTC, datetime

from dtjob import times
from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api


def failed_over(api: Api, namespace: str, reason: str, name: str = "digits") -> str:
    """Wait until the job has failed for this reason, which its condition and an event say too; returns the message."""
    found = wait_phase(api, namespace, "Failed", name)
    condition = next(one for one in found["status"]["conditions"] if one["type"] == "Failed")
    assert (condition["status"], condition["reason"], found["status"]["reason"]) == ("True", reason, reason)
    message = str(condition["message"])
    api.wait(
        "events",
        namespace,
        lambda events: any(
            (one["reason"], one["message"], one["involvedObject"]["name"]) == (reason, message, name)
            for one in events.values()
        ),
    )
    return message


def test_a_job_in_which_nothing_happens_fails_when_its_time_is_up(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job(cleanPodPolicy="None"))
    since = times.parse(wait_phase(api, namespace, "Running")["status"]["active"]["since"])
    soon = int((datetime.now(UTC) - since).total_seconds()) + 4
    api.patch("dtjobs", namespace, "digits", {"spec": {"activeDeadlineSeconds": soon}})
    assert f"({soon})" in failed_over(api, namespace, "DeadlineExceeded")
    api.wait("pods", namespace, lambda pods: not pods)


def test_an_ended_job_goes_with_all_that_it_has(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    for name, seconds in (("well", 1), ("badly", 3600)):
        policy = {"maxRestartsWithoutProgress": 0}
        api.create("dtjobs", namespace, job(name, "Default", ttlSecondsAfterFinished=seconds, failurePolicy=policy))
        kubelet.run(f"{name}-chief-0-0")
    kubelet.exit("badly-chief-0-0", 1)
    wait_phase(api, namespace, "Failed", "badly")
    kubelet.succeed("well-chief-0-0")
    api.wait_for("dtjobs", namespace, "well", lambda found: found is None)
    api.wait("pods", namespace, lambda pods: set(pods) == {"badly-chief-0-0"})
    assert api.get("dtjobs", namespace, "badly")["status"]["phase"] == "Failed"
    at_once = json.dumps({"spec": {"ttlSecondsAfterFinished": 0}})
    kubectl("patch", "dtjob", "badly", "--type=merge", "--patch", at_once)
    api.wait_for("dtjobs", namespace, "badly", lambda found: found is None)
