"""Elastic workers: bounds of their number, what they need, and when it may change."""

from __future__ import annotations

from typing import Any

from tests.refusals.manifests import CHECKPOINT, CLAIM, SINGLE, Manifest, bad, changed, job

_MIN = ("spec.replicas.worker.count", "count is below min", "use a higher count, or a lower min")
_MAX = ("spec.replicas.worker.count", "count is above max", "use a lower count, or a higher max")


def elastic(strategy: str = "MultiWorkerMirrored", worker: Manifest | None = None, **spec: Any) -> Manifest:
    """A job whose workers are elastic."""
    roles: Manifest = {"chief": {}, "worker": {"count": 3, "min": 2, "max": 6} if worker is None else worker}
    roles |= {"ps": {}} if strategy == "ParameterServer" else {}
    return job(strategy, **{"replicas": roles, "checkpoint": {**CHECKPOINT, "volume": CLAIM}, **spec})


def _elasticity(**fields: Any) -> Manifest:
    return elastic(runPolicy={"elasticity": fields})


def _unknown(path: str) -> tuple[str, tuple[str, ...]]:
    return f'unknown field "{path}"', (f"{path}: is an unknown field", "remove it")


def _other_role(role: str) -> Manifest:
    whole = elastic("ParameterServer", checkpoint={**CHECKPOINT, "volume": CLAIM})
    return changed(whole, "spec", "replicas", role, to={"min": 1})


ELASTIC = [
    bad("count-below-min", elastic(worker={"count": 1, "min": 2}), *_MIN),
    bad("count-left-out-below-min", elastic(worker={"min": 2}), *_MIN),
    bad("count-above-max", elastic(worker={"count": 7, "max": 6}), *_MAX),
    bad("min-above-max", elastic(worker={"count": 4, "min": 5, "max": 3}), *_MIN[1:], *_MAX[1:]),
    bad("ps-count-below-min", elastic("ParameterServer", {"count": 1, "min": 2}), *_MIN),
    *(
        bad(
            f"{name}-{value}",
            elastic(worker={"count": 3, name: value}),
            f"spec.replicas.worker.{name}",
            f"should be {'greater' if value < 1 else 'less'} than or equal to",
            or_says=(f"spec.replicas.worker.{name}: must be at {'least' if value < 1 else 'most'}",),
        )
        for name, value in (("min", 0), ("max", 4001))
    ),
    bad(
        "min-as-text",
        elastic(worker={"count": 3, "min": "2"}),
        "spec.replicas.worker.min",
        "must be of type integer",
        or_says=("spec.replicas.worker.min: must be a whole number",),
    ),
    *(
        bad(f"elastic-{role}", _other_role(role), said, or_says=or_says)
        for role in ("chief", "ps", "evaluator")
        for said, or_says in (_unknown(f"spec.replicas.{role}.min"),)
    ),
    *(
        bad(
            f"elastic-under-{strategy}",
            elastic(strategy),
            "spec.replicas.worker",
            "this strategy trains in one pod, its chief: remove worker",
        )
        for strategy in SINGLE[:1]
    ),
    bad(
        "elastic-without-checkpoint",
        elastic(checkpoint=...),
        "spec.checkpoint",
        "add checkpoint, or remove replicas.worker.min and max",
    ),
    bad(
        "elasticity-without-min",
        elastic(worker={"count": 3, "max": 6}, runPolicy={"elasticity": {"growPeriodSeconds": 60}}),
        "spec.runPolicy.elasticity",
        "add min, or remove elasticity",
    ),
    bad(
        "elasticity-without-workers",
        job("Default", runPolicy={"elasticity": {}}),
        "spec.runPolicy.elasticity",
        "add min, or remove elasticity",
    ),
    *(
        bad(
            f"{name}-0",
            _elasticity(**{name: 0}),
            f"spec.runPolicy.elasticity.{name}",
            "should be greater than or equal to 1",
            or_says=(f"spec.runPolicy.elasticity.{name}: must be at least 1",),
        )
        for name in ("scheduleDeadlineSeconds", "growPeriodSeconds")
    ),
    bad(
        "elasticity-as-number",
        elastic(runPolicy={"elasticity": 60}),
        "spec.runPolicy.elasticity",
        "must be of type object",
        or_says=("spec.runPolicy.elasticity: must be a mapping",),
    ),
    bad(
        "name-long-for-max-workers",
        {**elastic(worker={"count": 1, "max": 11}), "metadata": {"name": "a" * 54}},
        "metadata.name",
        "worker",
        "use a shorter name",
    ),
]

ELASTIC_TAKEN = {
    "elastic": elastic(),
    "elastic-ps": elastic("ParameterServer"),
    "elastic-without-max": elastic(worker={"count": 2, "min": 2}),
    "elastic-without-min": elastic(worker={"count": 2, "max": 2}),
    "elastic-without-program": elastic(program=..., checkpoint=...),
    "elastic-without-chief": elastic(replicas={"worker": {"count": 2, "min": 1}}),
    "elasticity": _elasticity(scheduleDeadlineSeconds=60, growPeriodSeconds=3600),
    "elasticity-of-defaults": _elasticity(),
}

ELASTIC_BEFORE = elastic()
"""The job that the changes below change."""


def _worker(to: Manifest) -> Manifest:
    return changed(ELASTIC_BEFORE, "spec", "replicas", "worker", to=to)


_AGAIN = "delete the job and create it again"
ELASTIC_CHANGES = [
    bad("scale-below-min", _worker({"count": 1, "min": 2, "max": 6}), *_MIN),
    bad("scale-above-max", _worker({"count": 7, "min": 2, "max": 6}), *_MAX),
    bad("scale-and-no-longer-elastic", _worker({"count": 4}), "spec.replicas", _AGAIN, "worker.min or worker.max"),
    bad(
        "scale-and-other-resources",
        _worker({"count": 4, "min": 2, "max": 6, "resources": {"limits": {"cpu": "2"}}}),
        "spec.replicas",
        _AGAIN,
    ),
]
ELASTIC_CHANGES_TAKEN = {
    "scale-up": _worker({"count": 6, "min": 2, "max": 6}),
    "scale-down": _worker({"count": 2, "min": 2, "max": 6}),
    "scale-beyond-the-old-max": _worker({"count": 9, "min": 2, "max": 9}),
    "no-longer-elastic": _worker({"count": 3}),
    "lower-min": _worker({"count": 3, "min": 1, "max": 6}),
}
