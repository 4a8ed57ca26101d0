# SPDX-License-Identifier: Apache-2.0
"""Goodput in the status, counted on by the next operator, from a supervisor's own status server."""

from typing import Any

from dtjob import times
from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import columns, job
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_progress import ServedStatus
from tests.cluster.test_progress import served as served  # a fixture
from tools.cluster.rest import Api, Object


def told(step: int, **spent: float) -> dict[str, Any]:
    """What the supervisor says beside who it is."""
    base = {"from": 0, "keptSteps": step, "kept": 0, "redoneSteps": 0, "redone": 0, "saving": 0}
    return {"state": "training", "attempt": 0, "restoredStep": 0, "step": step, "spent": {**base, **spent}}


def counts(kept: int, redone: int) -> Any:
    """A condition for `Api.wait_for` on a job."""

    def holds(found: Object | None) -> bool:
        steps = (found or {}).get("status", {}).get("goodput", {}).get("steps", {})
        return (steps.get("kept", 0), steps.get("redone", 0)) == (kept, redone)

    return holds


def test_the_next_operator_counts_on(
    operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet, kubectl: Kubectl, served: ServedStatus
) -> None:
    api.create("dtjobs", namespace, job(strategy="Mirrored", network={"statusPort": served.port}))
    who = {"jobUid": api.get("dtjobs", namespace, "digits")["metadata"]["uid"]}
    served.status = who | told(10)  # nobody trains longer than there was time, and all run since a moment ago only
    kubelet.run("digits-chief-0-0", address="127.0.0.1")
    before = api.wait_for("dtjobs", namespace, "digits", counts(10, 0))
    assert before is not None
    operator.kill()
    served.status = who | told(15, kept=0.2, redone=0.1, redoneSteps=5, saving=0.05)
    operator.start()
    after = api.wait_for("dtjobs", namespace, "digits", counts(15, 5))
    assert after is not None
    first, second = before["status"]["goodput"], after["status"]["goodput"]
    assert {name: second["seconds"][name] for name in ("kept", "redone", "saving")} == {
        "kept": "0.2", "redone": "0.1", "saving": "0.05",
    }  # fmt: skip
    until = [times.parse(one["status"]["internal"]["goodput"]["until"]) for one in (before, after)]
    passed = until[1] - until[0]
    spent = [sum(float(text) for text in one.get("seconds", {}).values()) for one in (first, second)]
    added = spent[1] - spent[0]
    assert abs(added - passed.total_seconds()) < 0.05
    assert columns(kubectl, "-o", "wide")["GOODPUT(%)"] == str(second["percentage"])
