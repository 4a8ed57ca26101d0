# SPDX-License-Identifier: Apache-2.0
"""How long a pod stays bound to a node that was lost before it counts as gone.

Kubernetes gives every pod 300 s (its admission plugin DefaultTolerationSeconds), in which the whole group would wait.
"""

from typing import Any

NODE_LOST_SECONDS = 30
"""A training pod's time; the node was silent for most of a minute before it got the taint."""
NODE_LOST_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def with_node_loss(tolerations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The user's tolerations, and ours for the taints of a lost node that none of them speaks of."""
    ours = [
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": NODE_LOST_SECONDS}
        for taint in NODE_LOST_TAINTS
        if not any(_covers(toleration, taint) for toleration in tolerations)
    ]
    return [*tolerations, *ours]


def with_those_of(tolerations: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A pod's tolerations, and those of another whose node it has to go to: nothing but its own for a lost node."""
    more = [one for one in other if one not in tolerations and one.get("key") not in NODE_LOST_TAINTS]
    return [*tolerations, *more]


def _covers(toleration: dict[str, Any], taint: str) -> bool:
    """As DefaultTolerationSeconds decides: no key means every taint, and no effect every effect."""
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")
