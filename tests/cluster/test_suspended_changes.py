# SPDX-License-Identifier: Apache-2.0
"""What of a suspended job's roles an API server lets be changed. No operator runs: the statuses are written here."""

from typing import Any

import pytest

from tests.refusals.life import SUSPENDED, SUSPENDED_CHANGES, SUSPENDED_CHANGES_TAKEN
from tests.refusals.manifests import Bad
from tools.cluster.rest import Api, ApiError, Object


@pytest.mark.parametrize("row", SUSPENDED_CHANGES, ids=[row.name for row in SUSPENDED_CHANGES])
def test_other_changes_of_a_suspended_jobs_roles_are_refused(api: Api, namespace: str, row: Bad) -> None:
    existing = api.create("dtjobs", namespace, SUSPENDED)
    with pytest.raises(ApiError) as refusal:
        _change(api, namespace, existing, row.manifest)
    for part in row.says:
        assert part in refusal.value.message


def test_scheduling_and_resources_of_a_suspended_job_can_be_changed(api: Api, namespace: str) -> None:
    existing = api.create("dtjobs", namespace, SUSPENDED)
    for manifest in SUSPENDED_CHANGES_TAKEN.values():
        assert _change(api, namespace, existing, manifest)
    started = {"startTime": "2026-11-21T10:00:00Z", "phase": "Running"}
    existing = api.replace("dtjobs", namespace, {**existing, "status": started}, "status")
    for manifest in SUSPENDED_CHANGES_TAKEN.values():  # its pods are still there
        with pytest.raises(ApiError, match=r"spec\.replicaSpecs"):
            _change(api, namespace, existing, manifest)
    existing = api.replace("dtjobs", namespace, {**existing, "status": {**started, "phase": "Suspended"}}, "status")
    for manifest in SUSPENDED_CHANGES_TAKEN.values():
        assert _change(api, namespace, existing, manifest)


def _change(api: Api, namespace: str, existing: Object, manifest: Any) -> Object:
    meta = {**manifest["metadata"], "resourceVersion": existing["metadata"]["resourceVersion"]}
    return api.replace("dtjobs", namespace, {**manifest, "metadata": meta}, dryRun="All", fieldValidation="Strict")
