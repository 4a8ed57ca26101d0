# SPDX-License-Identifier: Apache-2.0
"""A real API server takes what `dtjob convert` makes of TFJobs, and keeps the nulls that leave a key to the image."""

import json
from typing import Any

import pytest

from dtjob.cli.convert.tfjob import convert
from tests.cluster.conftest import Kubectl
from tests.unit.operator.cli.convert.tfjobs import FILES, converted, of_file, replica
from tools.cluster.rest import Api

TFJOBS = [one for file in FILES for one in of_file(file)]


def _in(namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


@pytest.mark.parametrize("tfjob", TFJOBS, ids=lambda one: str(one["metadata"].get("name", "generated")))
def test_each_result_is_taken(api: Api, namespace: str, tfjob: dict[str, Any]) -> None:
    made = _in(namespace, convert(tfjob).manifest)
    assert api.create("dtjobs", namespace, made, dryRun="All", fieldValidation="Strict")["metadata"]["uid"]


def test_nulls_of_security_contexts_are_stored_by_server_side_apply(api: Api, namespace: str, kubectl: Kubectl) -> None:
    """kubectl apply without --server-side drops them, and `dtjob convert` says so."""
    made = _in(namespace, converted({"Chief": replica(securityContext={})}).manifest)
    kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(made))
    job = api.get("dtjobs", namespace, made["metadata"]["name"])
    pod = job["spec"]["replicaSpecs"]["chief"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] is None
    assert pod["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": None, "capabilities": None}
