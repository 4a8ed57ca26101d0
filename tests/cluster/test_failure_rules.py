# SPDX-License-Identifier: Apache-2.0
"""Rules about failures on a real API server: the page's blocks are taken, and each action does what it says."""

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.refusals.manifests import CHECKPOINT, PS_ROLES
from tests.refusals.manifests import job as manifest
from tests.unit.failure_rules_page import blocks
from tools.cluster.rest import Api, Object

BLOCKS = blocks()
AT_ONCE = {"initialSeconds": 0, "maxSeconds": 0}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_pages_blocks_are_taken(api: Api, namespace: str, name: str) -> None:
    roles = {**PS_ROLES, "evaluator": {}}
    whole = manifest("ParameterServer", replicaSpecs=roles, checkpoint=CHECKPOINT, failurePolicy=BLOCKS[name])
    stored = api.create("dtjobs", namespace, whole, dryRun="All", fieldValidation="Strict")["spec"]["failurePolicy"]
    assert len(stored.get("rules", ())) == len(BLOCKS[name].get("rules", ()))


def begin(api: Api, namespace: str, kubelet: Kubelet, policy: Object) -> None:
    """A job with this policy and an evaluator, whose pods run."""
    made = job(failurePolicy={**policy, "backoff": AT_ONCE})
    made["spec"]["replicaSpecs"]["evaluator"] = {}
    api.create("dtjobs", namespace, made)
    for task in ("chief-0", "worker-0", "worker-1", "evaluator-0"):
        kubelet.run(f"digits-{task}-0")


def test_the_first_block_of_the_page_acts_on_failed_pods_as_it_says(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet, kubectl: Kubectl
) -> None:
    """An ignored evaluator, a drained worker that is not counted, and the code that ends the job."""
    begin(api, namespace, kubelet, BLOCKS["shape"])
    wait_phase(api, namespace, "Running")
    kubelet.exit("digits-evaluator-0-0", 1)
    api.wait_for("dtjobs", namespace, "digits", lambda one: one and condition(one, "EvaluationGivenUp") == "True")
    kubelet.drain("digits-worker-0-0")
    kubelet.run("digits-worker-0-1")
    found = wait_phase(api, namespace, "Running")
    assert (found["status"]["internal"]["incident"].get("charged", 0), found["status"]["restarts"]["total"]) == (0, 1)
    wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-0-1", "digits-worker-1-0", "digits-evaluator-0-0")
    kubelet.exit("digits-worker-1-0", 42, message="SystemExit: 42")
    ended = wait_phase(api, namespace, "Failed")["status"]
    words = ended["message"]
    assert ended["reason"] == "PodFailurePolicy"
    assert ended["lastFailure"]["rule"] == "failurePolicy.rules[0] (FailJob) matches exit code 42"
    assert ended["restarts"]["total"] == 1
    api.wait("events", namespace, lambda events: any(one["message"] == words for one in events.values()))
    of_the_condition = "jsonpath={.status.conditions[?(@.type=='Failed')].message}"
    assert kubectl("get", "dtjob", "digits", "-o", of_the_condition).stdout == words


def condition(found: Object, type_: str) -> str:
    conditions = found.get("status", {}).get("conditions", ())
    return next((str(one["status"]) for one in conditions if one["type"] == type_), "")


def test_kubectl_explain_describes_failure_rules(kubectl: Kubectl) -> None:
    text = " ".join(kubectl("explain", "dtjob.spec.failurePolicy.rules", "--recursive").stdout.split())
    for part in ("action", "onExitCodes", "operator", "onSignals", "onReasons", "onPodConditions", "roles"):
        assert part in text
    assert "RestartAndIgnoreMaxRestarts: only maxDisruptionsWithoutProgress counts it" in " ".join(
        kubectl("explain", "dtjob.spec.failurePolicy.rules.action").stdout.split()
    )
