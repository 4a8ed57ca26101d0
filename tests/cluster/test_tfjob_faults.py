# SPDX-License-Identifier: Apache-2.0
"""What TFJob is known to do wrong, and dtjob must do better: what other files' tests do not show already.

The table in docs/migrate/tfjob.md names the test for each of TFJob's faults.
"""

import json
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.unit.failure_rules_page import blocks
from tests.unit.tfjob_page import dtjobs
from tools.cluster.rest import Api, Object

AT_ONCE = {"initialSeconds": 0, "maxSeconds": 0}


@pytest.mark.parametrize("name", dtjobs())
def test_the_pages_dtjobs_are_taken(api: Api, namespace: str, name: str) -> None:
    assert api.create("dtjobs", namespace, dtjobs()[name][0], dryRun="All")["metadata"]["name"] == name


def test_restarts_by_exit_code_are_limited(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    """Under TFJob's ExitCode policy as dtjob rules, each restart with a pod of its own: the limit holds."""
    rules = blocks()["tfjob-exit-code"]["rules"]
    policy = {"maxRestartsWithoutProgress": 2, "backoff": AT_ONCE, "rules": rules}
    api.create("dtjobs", namespace, job(strategy="Mirrored", failurePolicy=policy))
    for attempt in range(3):
        kubelet.exit(f"digits-chief-0-{attempt}", 137)
    status = wait_phase(api, namespace, "Failed")["status"]
    assert (status["reason"], status["restarts"]["total"]) == ("MaxRestartsExceeded", 2)
    assert "failurePolicy.maxRestartsWithoutProgress (2)" in status["message"]


@pytest.mark.parametrize("how", ["drain", "preempt", "delete"])
def test_a_running_pod_that_is_taken_away_is_no_failure(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet, how: str
) -> None:
    """Of a job that no failure is forgiven."""
    api.create("dtjobs", namespace, job(failurePolicy={"maxRestartsWithoutProgress": 0}))
    wait_phase(api, namespace, "Running")
    if how == "delete":
        api.delete("pods", namespace, "digits-worker-1-0")
    else:
        getattr(auto_kubelet, how)("digits-worker-1-0")
    wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-1")
    status = wait_phase(api, namespace, "Running")["status"]
    assert (status["restarts"]["total"], status["internal"]["incident"].get("charged", 0)) == (1, 0)


def test_a_ps_that_failed_is_replaced(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job(strategy="ParameterServer"))
    wait_phase(api, namespace, "Running")
    auto_kubelet.exit("digits-ps-0-0", 137, "OOMKilled")
    api.wait_for("pods", namespace, "digits-ps-0-1", lambda pod: pod is not None)
    status = wait_phase(api, namespace, "Running")["status"]
    assert status["restarts"] == {"total": 1, "causes": {"OOMKilled": 1}}


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (job("a" * 60), ("metadata.name", "use a shorter name")),
        (job(replicaSpecs={"chief": {}, "master": {}}), ('unknown field "spec.replicaSpecs.master"',)),
        (job(replicaSpecs={"Worker": {"replicas": 2}}), ('unknown field "spec.replicaSpecs.Worker"',)),
    ],
    ids=["a name that is too long", "a role that nobody knows", "a role in capitals"],
)
def test_a_job_that_could_never_run_is_refused_at_apply(
    kubectl: Kubectl, api: Api, namespace: str, manifest: Object, says: tuple[str, ...]
) -> None:
    done = kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest), check=False)
    assert done.returncode == 1
    for part in says:
        assert part in done.stderr
    assert api.list("dtjobs", namespace) == []


def test_step_checkpoint_cause_and_last_lines_stay_when_all_pods_have_gone(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    manifest = job(strategy="Mirrored", cleanPodPolicy="All", failurePolicy={"backoff": AT_ONCE})
    api.create("dtjobs", namespace, manifest)
    kubelet.exit("digits-chief-0-0", 3, message="step 41\nValueError: no such column")
    checkpoint = {"step": 460, "time": "2026-11-21T10:00:02Z"}
    last: dict[str, Any] = {"step": 460, "totalSteps": 460, "loss": 0.05, "checkpoint": checkpoint}
    kubelet.exit("digits-chief-0-1", 0, message=json.dumps(last))
    api.wait_for("dtjobs", namespace, "digits", lambda found: found and found["status"]["phase"] == "Succeeded")
    api.wait("pods", namespace, lambda pods: not pods)
    status = api.get("dtjobs", namespace, "digits")["status"]
    loss = [{"name": "loss", "value": "0.05"}]
    assert (status["progress"]["step"], status["progress"]["metrics"], status["checkpoint"]) == (460, loss, checkpoint)
    first = status["lastFailure"]
    assert (first["pod"], first["node"], first["exitCode"]) == ("digits-chief-0-0", "node-1", 3)
    assert first["logTail"] == "step 41\nValueError: no such column"
    assert status["restarts"] == {"total": 1, "causes": {"Error": 1}}
