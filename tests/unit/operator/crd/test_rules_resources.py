"""Requests and limits: a rule's Python over any amounts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtjob.crd.problems import problems
from dtjob.crd.rules_resources import has_limits_where_needed, has_requests_within_limits
from tests.refusals.manifests import Manifest, job

amounts = st.none() | st.integers(0, 5)
NAMES = ("cpu", "nvidia.com/gpu", "hugepages-2Mi")


def resources(name: str, request: int | None, limit: int | None) -> Manifest:
    given = {"requests": request, "limits": limit}
    return {kind: {name: amount} for kind, amount in given.items() if amount is not None}


@given(st.sampled_from(NAMES), amounts, amounts)
def test_what_is_taken_can_run(name: str, request: int | None, limit: int | None) -> None:
    more = request is not None and limit is not None and request > limit
    unequal = name != "cpu" and request is not None and request != limit
    manifest = job(replicaSpecs={"chief": {"resources": resources(name, request, limit)}})
    assert bool(problems(manifest)) == (more or unequal)


def test_what_is_no_quantity_has_a_rule_of_its_own() -> None:
    unreadable = {"requests": {"cpu": "many", "nvidia.com/gpu": "all"}, "limits": {"cpu": 1}}
    assert has_requests_within_limits(unreadable)
    assert has_limits_where_needed(unreadable)
