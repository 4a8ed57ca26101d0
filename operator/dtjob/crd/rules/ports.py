# SPDX-License-Identifier: Apache-2.0
"""Rules about ports: those of dtjob differ, and no container of a template takes one of them."""

from dtjob.api.spec.network import Network
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import Rule, default_of
from dtjob.crd.rules.templates import pod, pod_frame

_OURS_CEL = "([self.network.port] + (has(self.program) ? [self.network.statusPort, self.network.rendezvousPort] : []))"
_CONTAINERS = ("containers", "initContainers")


def _differ(one: str, other: str) -> Rule:
    return Rule(
        "spec",
        f"n.{one} != n.{other}",
        f"{one} (by default {default_of(Network, one)}) and {other} (by default {default_of(Network, other)}) must "
        "differ: change one of them",
        f"network.{one}",
        frame="!has(self.program) || [self.network].all(n, {})",
    )


def _not_ours(role: str) -> Rule:
    taken = f"has(c.ports) && c.name != '{TRAINING_CONTAINER}' && c.ports.exists(o, o.containerPort in {_OURS_CEL})"
    free = " && ".join(
        f"(!has({pod(role)}.{among}) || !{pod(role)}.{among}.exists(c, {taken}))" for among in _CONTAINERS
    )
    return Rule(
        "spec",
        free,
        "a container of this template has a port of spec.network: change its containerPort, or change network.port, "
        "network.statusPort or network.rendezvousPort",
        f"replicaSpecs.{role}.template.spec",
        at_creation=True,  # the ports of a container are its program's, which stays
        frame=pod_frame(role),
    )


PORT_RULES = (
    _differ("port", "statusPort"),
    _differ("port", "rendezvousPort"),
    _differ("statusPort", "rendezvousPort"),
    *(_not_ours(role.value) for role in Role),
)
