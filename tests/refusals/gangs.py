# SPDX-License-Identifier: Apache-2.0
"""Gangs and labels of nodes that make no sense, or that a provider would not heed."""

from typing import Any

from tests.refusals.manifests import CHECKPOINT, Bad, Manifest, bad, job, warned

_GANG, _TOPOLOGY = "spec.scheduling.gang", "spec.scheduling.topology"


def gang(**fields: Any) -> Manifest:
    """A chief and two workers in a gang."""
    return job(scheduling={"gang": fields})


def _topology(value: Any) -> Manifest:
    return job(scheduling={"topology": value})


def _one_elastic_worker() -> Manifest:
    specs: Manifest = {"worker": {"replicas": 1}}
    return job(replicaSpecs=specs, elasticPolicy={"minReplicas": 1}, checkpoint=CHECKPOINT, scheduling={"gang": {}})


def _bad_topology(name: str, value: Any, *says: str, or_says: tuple[str, ...] = ()) -> Bad:
    return bad(f"topology-{name}", _topology(value), *says, or_says=or_says)


_ONE = "only one pod of this job trains"
_WHICH = "set exactly one of required"
_KEY = "is not the key of a node label"
GANGS = [
    bad(
        "gang-provider-unknown",
        gang(provider="volcano"),
        f"{_GANG}.provider",
        '"Volcano"',
        or_says=(f"{_GANG}.provider: must be one of Kubernetes, Volcano or Coscheduling",),
    ),
    bad(
        "gang-minMember",
        gang(minMember=3),
        _GANG,
        "minMember",
        or_says=(f"{_GANG}.minMember: is an unknown field",),
    ),
    warned(bad("gang-of-one-pod", job("Mirrored", scheduling={"gang": {}}), _GANG, _ONE, "remove gang")),
    *(
        warned(
            bad(f"{block}-of-{provider}", gang(**named, **{block: {}}), f"{_GANG}.{block}", f"set provider to {owner}")
        )
        for block, owner, other in (
            ("volcano", "Volcano", "Coscheduling"),
            ("coscheduling", "Coscheduling", "Volcano"),
        )
        for provider, named in {
            "Kubernetes": {"provider": "Kubernetes"},
            other: {"provider": other},
            "whichever-provider": {},
        }.items()
    ),
    bad(
        "queue-by-no-name",
        gang(provider="Volcano", volcano={"queue": "Team A"}),
        f"{_GANG}.volcano.queue",
        "is not the name of a Queue",
    ),
    bad(
        "timeout-0",
        gang(provider="Coscheduling", coscheduling={"scheduleTimeoutSeconds": 0}),
        f"{_GANG}.coscheduling.scheduleTimeoutSeconds",
        "should be greater than or equal to 1",
        or_says=(f"{_GANG}.coscheduling.scheduleTimeoutSeconds: must be at least 1",),
    ),
    _bad_topology("without-label", {}, _TOPOLOGY, _WHICH),
    _bad_topology("required-and-preferred", {"required": "a", "preferred": "b"}, _TOPOLOGY, _WHICH),
    _bad_topology("with-value", {"required": "rack=a"}, f"{_TOPOLOGY}.required", _KEY),
    _bad_topology("with-two-prefixes", {"preferred": "a/b/c"}, f"{_TOPOLOGY}.preferred", _KEY),
    _bad_topology(
        "empty-label",
        {"required": ""},
        f"{_TOPOLOGY}.required",
        "at least 1 chars",
        or_says=(f"{_TOPOLOGY}.required: must not be empty",),
    ),
    warned(bad("topology-of-one-pod", job("Default", scheduling={"topology": {"required": "a"}}), _TOPOLOGY, _ONE)),
]

GANGS_TAKEN = {
    "gang": gang(),
    "gang-of-Kubernetes": gang(provider="Kubernetes"),
    "gang-of-Volcano": gang(provider="Volcano", volcano={"queue": "team-a.b"}),
    "gang-of-Coscheduling": gang(provider="Coscheduling", coscheduling={"scheduleTimeoutSeconds": 60}),
    "gang-of-a-parameter-server": job("ParameterServer", scheduling={"gang": {}}),
    "gang-of-one-worker-that-may-be-more": _one_elastic_worker(),
    "topology": _topology({"required": "topology.kubernetes.io/rack"}),
    "topology-preferred": job(scheduling={"gang": {}, "topology": {"preferred": "nvidia.com/gpu.clique"}}),
}
