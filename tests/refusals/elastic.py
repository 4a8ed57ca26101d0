# SPDX-License-Identifier: Apache-2.0
"""Elastic workers: bounds of their number, what they need, and when it may change."""

from typing import Any

from tests.refusals.manifests import CHECKPOINT, SINGLE, Manifest, bad, changed, job

_REPLICAS = "spec.replicaSpecs.worker.replicas"
_MIN = (_REPLICAS, "replicas is below elasticPolicy.minReplicas", "use more replicas, or a lower minReplicas")
_MAX = (_REPLICAS, "replicas is above elasticPolicy.maxReplicas", "use fewer replicas, or a higher maxReplicas")


def elastic(
    strategy: str = "MultiWorkerMirrored",
    replicas: int | None = 3,
    least: Any = 2,
    most: Any = 6,
    worker: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """A job whose workers are elastic; None leaves a field out."""
    number = {} if replicas is None else {"replicas": replicas}
    roles: Manifest = {"chief": {}, "worker": {**number, **(worker or {})}}
    roles |= {"ps": {}} if strategy == "ParameterServer" else {}
    bounds = {name: value for name, value in (("minReplicas", least), ("maxReplicas", most)) if value is not None}
    return job(strategy, **{"replicaSpecs": roles, "elasticPolicy": bounds, "checkpoint": CHECKPOINT, **spec})


def _policy(**fields: Any) -> Manifest:
    return elastic(elasticPolicy=fields)


ELASTIC = [
    bad("replicas-below-min", elastic(replicas=1), *_MIN),
    bad("replicas-left-out-below-min", elastic(replicas=None), *_MIN),
    bad("replicas-above-max", elastic(replicas=7), *_MAX),
    bad("min-above-max", elastic(replicas=4, least=5, most=3), *_MIN, or_says=(*_MIN[1:], *_MAX[1:])),
    bad("replicas-below-min-of-ps", elastic("ParameterServer", replicas=1), *_MIN),
    *(
        bad(
            f"{name}-{value}",
            _policy(**{name: value}),
            f"spec.elasticPolicy.{name}",
            f"should be {'greater' if value < 1 else 'less'} than or equal to",
            or_says=(f"spec.elasticPolicy.{name}: must be at {'least' if value < 1 else 'most'}",),
        )
        for name, value in (("minReplicas", 0), ("maxReplicas", 4001))
    ),
    bad(
        "min-as-text",
        _policy(minReplicas="2"),
        "spec.elasticPolicy.minReplicas",
        "must be of type integer",
        or_says=("spec.elasticPolicy.minReplicas: must be a whole number",),
    ),
    *(
        bad(
            f"elastic-under-{strategy}",
            elastic(strategy),
            "spec.replicaSpecs.worker",
            "this strategy trains in one pod, its chief: remove worker",
        )
        for strategy in SINGLE[:1]
    ),
    bad(
        "elastic-without-checkpoint", elastic(checkpoint=...), "spec.checkpoint", "add checkpoint, or remove elasticPo"
    ),
    bad(
        "elastic-without-workers",
        job("Default", elasticPolicy={}),
        "spec.elasticPolicy",
        "add replicaSpecs.worker, or remove elasticPolicy",
    ),
    *(
        bad(
            f"{name}-0",
            _policy(**{name: 0}),
            f"spec.elasticPolicy.{name}",
            "should be greater than or equal to 1",
            or_says=(f"spec.elasticPolicy.{name}: must be at least 1",),
        )
        for name in ("scheduleTimeoutSeconds", "growPeriodSeconds")
    ),
    bad(
        "elastic-policy-as-number",
        elastic(elasticPolicy=60),
        "spec.elasticPolicy",
        "must be of type object",
        or_says=("spec.elasticPolicy: must be a mapping",),
    ),
    bad(
        "name-long-for-max-workers",
        {**elastic(replicas=1, least=None, most=11), "metadata": {"name": "a" * 54}},
        "metadata.name",
        "worker",
        "use a shorter name",
    ),
]

ELASTIC_TAKEN = {
    "elastic": elastic(),
    "elastic-ps": elastic("ParameterServer"),
    "elastic-without-max": elastic(replicas=2, most=None),
    "elastic-without-min": elastic(replicas=2, least=None, most=2),
    "elastic-without-program": elastic(program=..., checkpoint=...),
    "elastic-without-chief": elastic(replicaSpecs={"worker": {"replicas": 2}}),
    "elastic-with-times": _policy(scheduleTimeoutSeconds=60, growPeriodSeconds=3600),
    "elastic-without-bounds": _policy(),
}

ELASTIC_BEFORE = elastic()
"""The job that the changes below change."""


_AGAIN = "delete the job and create it again"
ELASTIC_CHANGES = [
    bad("scale-below-min", elastic(replicas=1), *_MIN),
    bad("scale-above-max", elastic(replicas=7), *_MAX),
    bad(
        "scale-and-no-longer-elastic",
        changed(elastic(replicas=4), "spec", "elasticPolicy", to=...),
        "spec.replicaSpecs",
        _AGAIN,
        "worker.replicas can only if elasticPolicy is set",
    ),
    bad(
        "scale-and-other-resources",
        elastic(replicas=4, worker={"resources": {"limits": {"cpu": "2"}}}),
        "spec.replicaSpecs",
        _AGAIN,
    ),
]
ELASTIC_CHANGES_TAKEN = {
    "scale-up": elastic(replicas=6),
    "scale-down": elastic(replicas=2),
    "scale-beyond-the-old-max": elastic(replicas=9, most=9),
    "no-longer-elastic": changed(ELASTIC_BEFORE, "spec", "elasticPolicy", to=...),
    "lower-min": elastic(least=1),
}
