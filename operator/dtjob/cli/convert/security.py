# SPDX-License-Identifier: Apache-2.0
"""Security contexts: a TFJob's pods run as their images say, and dtjob's as user 1000 without privileges.

A key that a template sets to null is left to the cluster, so that a converted job runs as before.
"""

from dtjob.cli.convert.fields import Fields, mapping
from dtjob.cli.convert.findings import Findings
from dtjob.objects.pod.security import CONTAINER_SECURITY, POD_SECURITY

_CONTAINERS = ("containers", "initContainers")
NOTE = (
    "as in TFJob: null leaves a key to the image and the cluster. kubectl apply drops nulls: write kubectl apply "
    "--server-side. To run as user 1000 without privileges, remove the nulls"
)


def kept_as_it_was(pod: Fields, path: str, said: Findings) -> Fields:
    """The pod's spec with a null for each key that dtjob would set and the TFJob leaves out."""
    theirs = mapping(pod.get("securityContext"), f"{path}.securityContext")
    context = {**dict.fromkeys(POD_SECURITY), **theirs}
    changed = {kind: [_container(one, f"{path}.{kind}") for one in pod[kind]] for kind in _CONTAINERS if kind in pod}
    said.note("spec.tfReplicaSpecs.*.template.spec.securityContext", NOTE)
    return {**pod, "securityContext": context, **changed}


def _container(container: Fields, path: str) -> Fields:
    theirs = dict(mapping(container.get("securityContext"), f"{path}.securityContext"))
    if "capabilities" in theirs:
        theirs["capabilities"] = {"drop": None, **mapping(theirs["capabilities"], f"{path}.capabilities")}
    if not theirs.keys() & {"allowPrivilegeEscalation"} and theirs.get("privileged"):
        return {**container, "securityContext": {"capabilities": None, **theirs}}
    return {**container, "securityContext": {**dict.fromkeys(CONTAINER_SECURITY), **theirs}}
