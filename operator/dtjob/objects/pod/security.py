# SPDX-License-Identifier: Apache-2.0
"""Security contexts: what the restricted Pod Security profile asks for, under what a template says, key by key.

A template that sets one key (fsGroup, say) keeps our values of all others. A key that it sets to null is left to the
cluster, as some choose the users of pods themselves. If the template explicitly asks for something (root, privileged),
those of our values that contradict it are left out. A pod with both is refused or never starts.
"""

from collections.abc import Mapping
from typing import Any

from dtjob.objects.manifest import Manifest

NON_ROOT_UID = 1000

POD_SECURITY: Mapping[str, Any] = {
    "runAsNonRoot": True,
    "runAsUser": NON_ROOT_UID,
    "runAsGroup": NON_ROOT_UID,
    "fsGroup": NON_ROOT_UID,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""With POD_SECURITY, what the restricted profile asks for: of every container, init containers and sidecars too."""

SYS_ADMIN = "CAP_SYS_ADMIN"
"""The capability that the API server refuses beside allowPrivilegeEscalation: false, and only in this spelling."""


def pod_security(user: Mapping[str, Any] | None, default: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The pod's securityContext, from the template's (None: it has none). `default` is the operator's in place of
    ours."""
    user = user or {}
    ours = dict(POD_SECURITY if default is None else default)
    if _is_root(user):
        ours.pop("runAsNonRoot", None)
    return _merged(ours, user)


def with_security(container: Manifest) -> Manifest:
    """A container of the template, with what its securityContext leaves out."""
    user = container.get("securityContext") or {}
    ours = dict(CONTAINER_SECURITY)
    capabilities = user.get("capabilities") or {}
    if user.get("privileged") or SYS_ADMIN in (capabilities.get("add") or ()):
        del ours["allowPrivilegeEscalation"]
    if _is_root(user):
        ours["runAsNonRoot"] = False  # else the pod's true holds for it, and the kubelet never starts it
    merged = _merged(ours, user)
    if capabilities:
        merged["capabilities"] = _capabilities(capabilities)
    return {**container, "securityContext": merged}


def _is_root(user: Mapping[str, Any]) -> bool:
    return user.get("runAsUser") == 0


def _merged(ours: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**ours, **user}.items() if value is not None}


def _capabilities(user: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities of a container: the user's `drop` beside ours, and the user's `add`, which counts after both."""
    ours = CONTAINER_SECURITY["capabilities"]
    dropped = user.get("drop", ())
    if dropped is None:
        return _merged({}, user)
    return {**_merged({}, user), "drop": list(dict.fromkeys([*ours["drop"], *dropped]))}
