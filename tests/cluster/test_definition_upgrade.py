"""Jobs that an earlier definition took, after an upgrade to one that refuses them: they live on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.support.chart import wait_until
from tests.cluster.support.definitions import LATER, Install, downgrade, first_release, lenient, upgrade
from tests.cluster.support.jobs import job
from tools.cluster.rest import Api, ApiError, Object


def chief(**pod: Any) -> Object:
    """With a field that the definition leaves open: an API server takes no such job for unchanged."""
    return {"chief": {"template": {"spec": {"tolerations": [{"operator": "Exists"}], **pod}}}}


MERGE = "application/merge-patch+json"
HOOK = {"name": "tensorflow", "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}}}
TWICE = {"name": "tensorflow", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
REFUSED_NOW: dict[str, tuple[Object, str]] = {
    "a variable twice": (job(strategy="Mirrored", replicas=chief(containers=[TWICE])), "Duplicate value"),
    "a grace period shorter than a save": (
        job(strategy="Mirrored", replicas=chief(terminationGracePeriodSeconds=5)),
        "saveTimeoutSeconds",
    ),
    "a hook of unknown length": (job(strategy="Mirrored", replicas=chief(containers=[HOOK])), "use preStop.sleep"),
    **{
        f"checkpoints on a read-only {source}": (
            job(strategy="Mirrored", checkpoint={"directory": "/a", "volume": {source: settings}}),
            "is read-only",
        )
        for source, settings in {"configMap": {"name": "a"}, "nfs": {"server": "a", "readOnly": True}}.items()
    },
}


CAME_LATER: Object = {
    "suspend": True,
    "failurePolicy": {"rules": [{"action": "FailJob", "onReasons": ["OOMKilled"]}]},
    "runPolicy": {
        "activeDeadlineSeconds": 86400,
        "startDeadlineSeconds": 600,
        "ttlSecondsAfterFinished": {"succeeded": 3600},
    },
}
OLD_STATUS: Object = {
    "observedGeneration": 1,
    "phase": "Running",
    "conditions": [{"type": "Running", "status": "True", "reason": "AllTasksRunning", "message": "all run"}],
    "restarts": {"total": 1, "causes": {"Error": 1}},
    "incident": {"startedAt": "2026-11-21T10:00:00Z", "cause": "Error", "charged": 1, "attempts": {"worker-1": 1}},
    "firstFailure": {"pod": "digits-worker-1-0", "exitCode": 3, "message": "ValueError"},
    "attempts": {"worker-1": 1},
    "startTime": "2026-11-21T10:00:00Z",
    "allCreated": True,
}
NEW_STATUS: Object = {
    **OLD_STATUS,
    "phase": "Suspended",
    "conditions": [{"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "suspended"}],
    "incident": {**OLD_STATUS["incident"], "action": "Restart", "beforeFirstStep": {"exitCode": 3}},
    "firstFailure": {**OLD_STATUS["firstFailure"], "rule": "failurePolicy.rules[0]", "beforeFirstStep": True},
    "active": {"seconds": 90},
    "firstStepTime": "2026-11-21T10:01:00Z",
}


def changed_when_served(api: Api, path: str, change: Object, taken: bool) -> Object:
    """Patch the job once the definition that is to be served takes the change, or refuses its fields; gives the job."""

    def served() -> bool:
        try:
            api.call("PATCH", path, change, {"fieldValidation": "Strict", "dryRun": "All"}, MERGE)
        except ApiError as error:
            return not taken and 'unknown field "spec.suspend"' in error.message
        return taken

    wait_until(served, "the other definition is served")
    return api.call("PATCH", path, change if taken else {}, None, MERGE)


def test_a_job_of_the_first_release_takes_what_came_later_and_outlives_the_way_back(
    api: Api, namespace: str, other_definition: Install
) -> None:
    """Its status too: what one release writes of it, the other's definition keeps."""
    group = other_definition(first_release)
    base = f"apis/{group}/v1alpha1/namespaces/{namespace}/distributedtrainingjobs"
    path = f"{base}/digits"
    made = api.call("POST", base, {**job(), "apiVersion": f"{group}/v1alpha1"}, {"fieldValidation": "Strict"})
    old = api.call("PUT", f"{path}/status", {**made, "status": OLD_STATUS})
    assert old["status"] == OLD_STATUS

    before = upgrade(api, group)
    new = changed_when_served(api, path, {"spec": CAME_LATER}, taken=True)
    assert new["status"] == OLD_STATUS
    assert {field for block in CAME_LATER.values() if isinstance(block, dict) for field in block} == {
        field for block in ("failurePolicy", "runPolicy") for field in LATER[block]
    }
    assert (new["spec"]["suspend"], new["spec"]["failurePolicy"]["maxRestarts"]) == (True, 10)
    assert new["spec"]["runPolicy"] == {"cleanPods": "Running", **CAME_LATER["runPolicy"]}
    api.call("PUT", f"{path}/status", {**new, "status": NEW_STATUS})

    downgrade(api, group, before)
    back = changed_when_served(api, path, {"spec": CAME_LATER}, taken=False)
    assert (back["spec"], back["status"]) == (old["spec"], NEW_STATUS)
    running = {**back, "status": {**NEW_STATUS, "phase": "Running"}}
    assert api.call("PUT", f"{path}/status", running)["status"] == running["status"]


@pytest.mark.parametrize("name", REFUSED_NOW)
def test_a_job_that_is_refused_now_keeps_its_status(
    api: Api, namespace: str, other_definition: Install, name: str
) -> None:
    """An API server checks the whole job at each write of its status."""
    manifest, why = REFUSED_NOW[name]
    group = other_definition(lenient)
    manifest = {**manifest, "apiVersion": f"{group}/v1alpha1"}
    base = f"apis/{group}/v1alpha1/namespaces/{namespace}/distributedtrainingjobs"
    made = api.call("POST", base, manifest)
    upgrade(api, group)

    def refused_now() -> bool:
        try:
            api.call("POST", base, {**manifest, "metadata": {"name": "another"}}, {"dryRun": "All"})
        except ApiError as error:
            return why in error.message
        return False

    wait_until(refused_now, "the new definition is served")
    stored = api.call("PUT", f"{base}/digits/status", {**made, "status": {"phase": "Running"}})
    assert stored["status"] == {"phase": "Running"}
    stored["metadata"]["labels"] = {"team": "vision"}
    assert api.call("PUT", f"{base}/digits", stored)["metadata"]["labels"] == {"team": "vision"}
