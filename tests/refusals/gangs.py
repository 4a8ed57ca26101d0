"""Gangs and labels of nodes that make no sense, or that a provider would not heed."""

from __future__ import annotations

from typing import Any

from tests.refusals.manifests import CHECKPOINT, CLAIM, Bad, Manifest, bad, job

_GANG, _TOPOLOGY = "spec.scheduling.gang", "spec.scheduling.topology"
_FIVE: Manifest = {"chief": {}, "worker": {"count": 3}, "evaluator": {}}


def gang(**fields: Any) -> Manifest:
    """A chief and two workers in a gang."""
    return job(scheduling={"gang": fields})


def _topology(value: Any) -> Manifest:
    return job(scheduling={"topology": value})


def _elastic(worker: Manifest, chief: bool = True, **gang: Any) -> Manifest:
    """Elastic workers in a gang."""
    replicas: Manifest = {**({"chief": {}} if chief else {}), "worker": worker}
    checkpoint: Manifest = {**CHECKPOINT, "volume": CLAIM}
    return job(replicas=replicas, checkpoint=checkpoint, scheduling={"gang": gang})


def _bad_topology(name: str, value: Any, *says: str, or_says: tuple[str, ...] = ()) -> Bad:
    return bad(f"topology-{name}", _topology(value), *says, or_says=or_says)


_ONE = "only one pod of this job trains"
_WHICH = "write one of required"
_KEY = "is no label of nodes; write its key alone"
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
    bad("gang-of-more-than-there-are", gang(minAvailable=4), f"{_GANG}.minAvailable", "write at most their number"),
    bad(
        "gang-with-the-evaluator",
        job(replicas=_FIVE, checkpoint={"directory": "/checkpoints"}, scheduling={"gang": {"minAvailable": 5}}),
        f"{_GANG}.minAvailable",
        "the evaluator is outside of the gang",
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
        _elastic({"count": 2, "min": 1, "max": 3}, minAvailable=5),
        f"{_GANG}.minAvailable",
        "write at most their number",
    ),
    bad("gang-of-one-pod", job("Mirrored", scheduling={"gang": {}}), _GANG, _ONE, "remove gang"),
    bad("queue-of-Kubernetes", gang(provider="Kubernetes", queue="a"), f"{_GANG}.queue", "set provider to Volcano"),
    bad("queue-of-Coscheduling", gang(provider="Coscheduling", queue="a"), f"{_GANG}.queue", "or remove queue"),
    bad("queue-of-whichever-provider", gang(queue="a"), f"{_GANG}.queue", "set provider to Volcano, or remove queue"),
    bad("queue-by-no-name", gang(provider="Volcano", queue="Team A"), f"{_GANG}.queue", "is no name of a Queue"),
    bad(
        "timeout-of-Kubernetes",
        gang(provider="Kubernetes", timeoutSeconds=60),
        f"{_GANG}.timeoutSeconds",
        "set provider to Coscheduling, or remove timeoutSeconds",
    ),
    bad("timeout-of-Volcano", gang(provider="Volcano", timeoutSeconds=60), f"{_GANG}.timeoutSeconds", "as long as it"),
    bad(
        "timeout-0",
        gang(provider="Coscheduling", timeoutSeconds=0),
        f"{_GANG}.timeoutSeconds",
        "should be greater than or equal to 1",
        or_says=(f"{_GANG}.timeoutSeconds: must be at least 1",),
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
    "gang-of-Volcano": gang(provider="Volcano", queue="team-a.b", minAvailable=3),
    "gang-of-Coscheduling": gang(provider="Coscheduling", timeoutSeconds=60),
    "gang-of-a-parameter-server": job("ParameterServer", scheduling={"gang": {"minAvailable": 4}}),
    "gang-of-one-worker-that-may-be-more": _elastic({"count": 1, "min": 1}, chief=False),
    "gang-of-more-than-there-are-yet": _elastic({"count": 2, "min": 1, "max": 3}, minAvailable=4),
    "topology": _topology({"required": "topology.kubernetes.io/rack"}),
    "topology-preferred": job(scheduling={"gang": {}, "topology": {"preferred": "nvidia.com/gpu.clique"}}),
}
