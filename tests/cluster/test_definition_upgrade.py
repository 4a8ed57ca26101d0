"""Jobs that an earlier definition took, after an upgrade to one that refuses them: they live on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.support.chart import wait_until
from tests.cluster.support.definitions import Install, lenient, upgrade
from tests.cluster.support.jobs import job
from tools.cluster.rest import Api, ApiError, Object


def chief(**pod: Any) -> Object:
    """With a field that the definition leaves open: an API server takes no such job for unchanged."""
    return {"chief": {"template": {"spec": {"tolerations": [{"operator": "Exists"}], **pod}}}}


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
