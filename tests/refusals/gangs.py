# SPDX-License-Identifier: Apache-2.0
"""Gangs and labels of nodes that make no sense, or that a provider would not heed."""

from typing import Any

from tests.refusals.manifests import CHECKPOINT, Bad, Manifest, bad, job

_GANG, _TOPOLOGY = "spec.scheduling.gang", "spec.scheduling.topology"
_FIVE: Manifest = {"chief": {}, "worker": {"replicas": 3}, "evaluator": {}}


def gang(**fields: Any) -> Manifest:
    """A chief and two workers in a gang."""
    return job(scheduling={"gang": fields})


def _topology(value: Any) -> Manifest:
    return job(scheduling={"topology": value})


def _elastic(replicas: int, chief: bool = True, most: int | None = None, **gang: Any) -> Manifest:
    """So many elastic workers in a gang; at most `most`."""
    specs: Manifest = {**({"chief": {}} if chief else {}), "worker": {"replicas": replicas}}
    policy = {"minReplicas": 1, **({"maxReplicas": most} if most else {})}
    return job(replicaSpecs=specs, elasticPolicy=policy, checkpoint=CHECKPOINT, scheduling={"gang": gang})


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
    bad(
        "gang-of-more-than-there-are", gang(minAvailable=4), f"{_GANG}.minAvailable", "is more than the pods that train"
    ),
    bad(
        "gang-with-the-evaluator",
        job(
            replicaSpecs=_FIVE,
            checkpoint={"storage": {"volume": {"emptyDir": {}}}},
            scheduling={"gang": {"minAvailable": 5}},
        ),
        f"{_GANG}.minAvailable",
        "the evaluator is not in the gang",
    ),
    bad(
        "gang-of-none",
        gang(minAvailable=0),
        f"{_GANG}.minAvailable",
        "should be greater than or equal to 1",
        or_says=(f"{_GANG}.minAvailable: must be at least 1",),
    ),
    bad(
        "gang-of-more-than-there-may-be",
        _elastic(2, most=3, minAvailable=5),
        f"{_GANG}.minAvailable",
        "is more than the pods that train",
    ),
    bad("gang-of-one-pod", job("Mirrored", scheduling={"gang": {}}), _GANG, _ONE, "remove gang"),
    *(
        bad(f"{block}-of-{provider}", gang(**named, **{block: {}}), f"{_GANG}.{block}", f"set provider to {owner}")
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
    bad("topology-of-one-pod", job("Default", scheduling={"topology": {"required": "a"}}), _TOPOLOGY, _ONE),
]

GANGS_TAKEN = {
    "gang": gang(),
    "gang-of-Kubernetes": gang(provider="Kubernetes", minAvailable=2),
    "gang-of-Volcano": gang(provider="Volcano", volcano={"queue": "team-a.b"}, minAvailable=3),
    "gang-of-Coscheduling": gang(provider="Coscheduling", coscheduling={"scheduleTimeoutSeconds": 60}),
    "gang-of-a-parameter-server": job("ParameterServer", scheduling={"gang": {"minAvailable": 4}}),
    "gang-of-one-worker-that-may-be-more": _elastic(1, chief=False),
    "gang-of-more-than-there-are-yet": _elastic(2, most=3, minAvailable=4),
    "topology": _topology({"required": "topology.kubernetes.io/rack"}),
    "topology-preferred": job(scheduling={"gang": {}, "topology": {"preferred": "nvidia.com/gpu.clique"}}),
}
