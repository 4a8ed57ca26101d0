# SPDX-License-Identifier: Apache-2.0
"""Tools that know Jobs, on real statuses: kubectl itself, and Argo's and Katib's expressions under their own libraries.

`tools/go/conditions` says what Argo and Katib make of the expressions in docs/jobs/workflows.md.
"""

import json
import subprocess
from collections.abc import Callable

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.unit.workflows_page import expressions
from tools import binaries
from tools.cluster.rest import Api, Object

Judge = Callable[[str, list[Object]], list[str]]
TOOLS = ("Argo Workflows", "Katib")
"""As tests/unit/workflows_page.py names them."""


@pytest.fixture(scope="module")
def judge() -> Judge:
    """What a tool, by its name in the page, makes of these objects: Running, Succeeded or Failed."""
    try:
        program = binaries.find(("conditions",))["conditions"]
    except binaries.BinariesError as error:
        pytest.skip(f"no evaluator of Argo's and Katib's expressions: {str(error).splitlines()[0]}")

    def judged(tool: str, objects: list[Object]) -> list[str]:
        asked = {
            "tool": tool.split()[0].lower(),
            "objects": objects,
            **{name: expressions(tool)[name] for name in ("successCondition", "failureCondition")},
        }
        done = subprocess.run([program], input=json.dumps(asked), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found: list[str] = json.loads(done.stdout)
        return found

    return judged


class Life:
    """What the API server had of a job, each with what a tool is to make of it."""

    def __init__(self) -> None:
        self.seen: list[tuple[Object, str]] = []

    def keep(self, found: Object, phase: str | None, made_of_it: str = "Running") -> None:
        """Keep the job, which is in this phase (None: nobody has looked at it yet)."""
        assert found.get("status", {}).get("phase") == phase
        self.seen.append((found, made_of_it))

    def is_judged_right(self, judge: Judge) -> None:
        objects, expected = zip(*self.seen, strict=True)
        for tool in TOOLS:
            assert judge(tool, list(objects)) == list(expected), tool


def holds(kubectl: Kubectl, name: str, condition: str) -> bool:
    """Whether the job has the condition now, by `kubectl wait`."""
    done = kubectl("wait", f"--for=condition={condition}", f"dtjob/{name}", "--timeout=0", check=False)
    assert done.returncode == 0 or "condition not met" in done.stderr, done.stderr
    return done.returncode == 0


def conditions(kubectl: Kubectl, name: str) -> set[str]:
    """Those that Jobs have, as kubectl finds them."""
    return {one for one in ("Suspended", "Complete", "Failed") if holds(kubectl, name, one)}


def test_kubectl_argo_and_katib_see_that_a_job_is_complete_and_nothing_before(
    shared_operator: OperatorProcess,
    api: Api,
    namespace: str,
    kubelet: Kubelet,
    kubectl: Kubectl,
    judge: Judge,
) -> None:
    life = Life()
    life.keep(api.create("dtjobs", namespace, job(suspend=True)), None)
    life.keep(wait_phase(api, namespace, "Suspended"), "Suspended")
    assert conditions(kubectl, "digits") == {"Suspended"}
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": False}})
    life.keep(wait_phase(api, namespace, "Pending"), "Pending")
    tasks = ("chief-0", "worker-0", "worker-1")
    for task in tasks:
        kubelet.run(f"digits-{task}-0")
    life.keep(wait_phase(api, namespace, "Running"), "Running")
    assert conditions(kubectl, "digits") == set()
    kubelet.exit("digits-worker-1-0", 3)
    life.keep(wait_phase(api, namespace, "Restarting"), "Restarting")
    kubelet.run("digits-worker-1-1")
    wait_phase(api, namespace, "Running")
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
    life.keep(wait_phase(api, namespace, "Suspended"), "Suspended")
    assert conditions(kubectl, "digits") == {"Suspended"}
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": False}})
    again = wait_pods(api, namespace, "digits-chief-0-1", "digits-worker-0-1", "digits-worker-1-2")
    for pod in again:
        kubelet.run(pod)
    wait_phase(api, namespace, "Running")
    kubelet.succeed("digits-chief-0-1")
    assert "condition met" in kubectl("wait", "--for=condition=Complete", "dtjob/digits", "--timeout=120s").stdout
    life.keep(api.get("dtjobs", namespace, "digits"), "Succeeded", "Succeeded")
    assert conditions(kubectl, "digits") == {"Complete"}
    life.is_judged_right(judge)


@pytest.mark.parametrize("why", ["MaxRestartsExceeded", "DeadlineExceeded", "PodFailurePolicy"])
def test_kubectl_argo_and_katib_see_that_a_job_has_failed(
    shared_operator: OperatorProcess,
    api: Api,
    namespace: str,
    kubelet: Kubelet,
    kubectl: Kubectl,
    judge: Judge,
    why: str,
) -> None:
    policy: Object = {"maxRestartsWithoutProgress": 0}
    if why == "PodFailurePolicy":
        policy["rules"] = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    limits = {"activeDeadlineSeconds": 1} if why == "DeadlineExceeded" else {}
    api.create("dtjobs", namespace, job(strategy="Mirrored", failurePolicy=policy, **limits))
    if not limits:  # else it may be over before its pod runs
        kubelet.exit("digits-chief-0-0", 42)
    assert "condition met" in kubectl("wait", "--for=condition=Failed", "dtjob/digits", "--timeout=120s").stdout
    found = api.get("dtjobs", namespace, "digits")
    assert found["status"]["reason"] == why
    assert conditions(kubectl, "digits") == {"Failed"}
    life = Life()
    life.keep(found, "Failed", "Failed")
    life.is_judged_right(judge)
