# SPDX-License-Identifier: Apache-2.0
"""The operator plans on with a status that somebody has changed in any way, and writes a status that is stored.

Hypothesis makes the changes up.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.kube.endpoints.job_metrics import job_metrics
from dtjob.plan.seen.children import Children
from tests.unit.fuzzed import VALUES, fuzzed
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.simulation.api import LARGEST, refusal
from tests.unit.operator.simulation.operator import job_manifest

JOB = builders.job(evaluator=True)


def written() -> dict[str, Any]:
    """The status of a job that runs after a failure."""
    job, children = JOB, Children(())
    for second in range(0, 60, 10):
        made = builders.plan_answered(job, children, at(second))
        job = builders.with_status(job, made.status or job.status)
        children = builders.carried_out(children, made, at(second))
        for pod in children.objects:
            if pod["kind"] == "Pod":
                failed = second == 20 and pod["metadata"]["name"] == "digits-worker-0-0"
                pod["status"] = builders.ended(1, at(second)) if failed else builders.running()
    return deepcopy(job.status)


WRITTEN = written()


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to each part of the value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([before] if before else []), *(path for name, one in inner for path in paths(one, (*before, name)))]


FORGED = [path for path in paths(WRITTEN) if path[-1] not in ("type", "reason")]
"""Without words that the pages list: `documented.py` looks for those of every plan there."""
INTERNAL = [path for path in FORGED if path[0] == "internal"]
ODD = st.one_of(
    VALUES,
    st.sampled_from((
        {"x": 1}, {"worker-0": -1}, [{"role": "worker", "attempt": 0, "indexes": "0-999999999"}],
        "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-21T10:00:00", -(2**31), 2**31 - 1, 2**53,
    )),
)  # fmt: skip


@fuzzed(60)
@given(changes=st.lists(st.tuples(st.sampled_from(INTERNAL) | st.sampled_from(FORGED), ODD), max_size=4))
def test_any_status_is_planned_with(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    """The API server has types for all but `internal`, so only what it would store is tried."""
    status = deepcopy(WRITTEN)
    for path, value in changes:
        inner = status
        try:
            for name in path[:-1]:
                inner = inner[name]
            inner[path[-1]] = value
        except (LookupError, TypeError):  # an earlier change has taken that away
            continue
    try:
        json.dumps(status, ensure_ascii=False).encode()
        if refusal(status) is not None:
            return
    except ValueError:  # it is no JSON, or half a pair of UTF-16 is in a name
        return
    job = builders.with_status(JOB, status)
    pods = tuple(builders.pod(job, id_, builders.running()) for id_ in ("chief-0", "worker-0"))
    for children in (Children(()), Children(pods)):
        made = builders.plan_answered(job, children, NOW)
        assert made.status is None or refusal(made.status) is None
    manifest = {**job_manifest(JOB), "status": status}
    for family in job_metrics([manifest], lambda _: pods, NOW):
        assert all(isinstance(sample.value, int | float) for sample in family.samples)


def _fill(status: dict[str, Any], path: tuple[Any, ...], fill: Callable[[int], Any]) -> bool:
    """Make the status at this path as large as the API server takes. Returns whether it takes the result."""
    inner = status
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = fill(LARGEST - len(json.dumps(status)) - 50)
    return refusal(status) is None


FILLS: dict[str, Callable[[int], Any]] = {
    "a text": lambda room: "x" * room,
    "an object": lambda room: {"x": "x" * (room - 10)},
    "a long name": lambda room: [{"role": "x" * (room - 50), "attempt": 0, "indexes": "0"}],
}
LATER = [(*path[:-1], "later") for path in FORGED if isinstance(path[-1], str)]
"""Fields that no operator has written."""
PLACES = [*FORGED, *LATER, ("queue",)]


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
def test_a_status_at_the_limit_of_the_api_server_does_not_grow_beyond_the_limit(fill: Callable[[int], Any]) -> None:
    """The operator does not carry on what others have written."""
    pods = tuple(builders.pod(JOB, id_, builders.ended(1, NOW)) for id_ in ("chief-0", "worker-0"))
    tried = 0
    for path in dict.fromkeys(PLACES):
        status = deepcopy(WRITTEN)
        if not _fill(status, path, fill):
            continue
        tried += 1
        made = builders.plan_answered(builders.with_status(JOB, status), Children(pods), NOW)
        assert made.status is not None
        assert len(json.dumps(made.status)) < LARGEST / 2, path
    assert tried > 3


@pytest.mark.parametrize("most", [2**31 - 1, 2**63 - 1], ids=["int32", "int64"])
def test_a_count_at_its_limit_does_not_grow_beyond_the_limit(most: int) -> None:
    status = deepcopy(WRITTEN)
    status["restarts"]["evaluator"] = status["active"]["seconds"] = 1
    status["goodput"] = {"seconds": {"kept": "1e300"}, "steps": {"kept": 1, "redone": 1}}
    for path in paths(status):
        inner = status
        for name in path[:-1]:
            inner = inner[name]
        if type(was := inner[path[-1]]) is int:
            inner[path[-1]] = most
            if refusal(status) is not None:
                inner[path[-1]] = was
    job = builders.with_status(JOB, status)
    ended = (builders.pod(job, id_, builders.ended(1, NOW)) for id_ in ("chief-0", "worker-0", "evaluator-0"))
    for children in (Children(()), Children(tuple(ended))):
        made = builders.plan_answered(job, children, at(120))
        assert made.status is not None
        assert refusal(made.status) is None


def test_a_group_of_billions_of_workers_is_not_believed() -> None:
    status = deepcopy(WRITTEN)
    status["workers"] = {"desired": 1, "replicas": 2**31 - 1}
    assert refusal(status) is not None
    job = builders.with_status(JOB, status)
    assert len(builders.plan_answered(job, Children(()), NOW).actions) < 100


def test_a_forged_backoff_lasts_no_longer_than_the_longest() -> None:
    status = deepcopy(WRITTEN)
    status["internal"] |= {"attempts": {"others": 5}, "allCreated": False}
    status["internal"]["incident"]["notBefore"] = "2027-11-21T10:00:00Z"
    job = builders.with_status(JOB, status)
    over = at(30 + job.spec.failure_policy.backoff.max_seconds)
    made = [builders.plan_answered(job, Children(()), now) for now in (over - timedelta(seconds=1), over)]
    assert list(map(builders.pods_made, made)) == [[], ["digits-chief-0-5", "digits-worker-0-5", "digits-worker-1-5"]]
