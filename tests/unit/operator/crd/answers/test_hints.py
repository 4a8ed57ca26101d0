# SPDX-License-Identifier: Apache-2.0
"""Words of other APIs: what to write for each is a field that there is."""

import re
from typing import Any

import pytest

from dtjob.crd.answers import hints
from dtjob.crd.answers.problems import problems
from dtjob.crd.schema import spec_schema
from tests.refusals.manifests import job

_FIELD = re.compile(
    r"\b(?:failurePolicy|scheduling|replicaSpecs|elasticPolicy|checkpoint|program|network)(?:\.\w+)+"
    r"|(?<=write )(?:(?!onReasons)[a-z]+[A-Z]\w+|image|strategy|program|suspend)"
)


def part(path: str) -> dict[str, Any] | None:
    """The schema at a dotted path below spec, None where it has no such field; `*` is any role."""
    found: dict[str, Any] | None = spec_schema()
    for name in path.removeprefix("spec.").split("."):
        found = ((found or {}).get("properties") or {}).get("worker" if name == "*" else name.removesuffix("[]"))
        if name.endswith("[]"):
            found = (found or {}).get("items")
    return found


@pytest.mark.parametrize("word", hints._ADVICE)
def test_each_hint_is_for_an_unknown_field_and_names_a_known_one(word: str) -> None:
    assert part(word) is None
    advice = hints.instead(word.replace("*", "worker")) or ""
    found = _FIELD.findall(advice)
    assert (
        found
        or advice.startswith(("remove it", "create", "write its", "write chief", "write worker", "write ps"))
        or (advice in ("write roles", "write evaluator", "write scheduling") or "onReasons" in advice)
    )
    for field in found:
        assert part(field), advice


@pytest.mark.parametrize(
    "path", ["spec.replica", "spec.replicaSpecs.chief.counts", "spec", "", "spec.replicas.chief.a.b"]
)
def test_a_field_that_no_other_api_has_gets_no_answer(path: str) -> None:
    assert hints.instead(path) is None


def test_a_field_of_another_api_has_a_hint_in_every_role_and_rule() -> None:
    assert hints.instead("spec.replicaSpecs.ps.count") == "write replicaSpecs.ps.replicas"
    assert hints.instead("spec.failurePolicy.rules[17].targetReplicatedJobs") == "write roles"


@pytest.mark.parametrize("role", ["chief", "evaluator"])
def test_the_number_of_a_role_of_one_task_is_to_be_removed(role: str) -> None:
    for word in ("spec.replicas.{}.count", "spec.replicaSpecs.{}.count", "spec.replicaSpecs.{}.replicas"):
        assert hints.instead(word.format(role)) == f"remove it: there is always one {role}"


def test_each_known_field_within_an_unknown_block_has_a_hint_and_others_have_none() -> None:
    old = {"worker": {"count": 4, "min": 2}, "chief": {}}
    found = problems(job(replicaSpecs=..., replicas=old, runPolicy={"cleanPods": "All", "zzz": 1}))
    assert [str(problem) for problem in found] == [
        "spec.replicaSpecs: is required; add it",
        "spec.replicas.worker.count: is an unknown field; write replicaSpecs.worker.replicas",
        "spec.replicas.worker.min: is an unknown field; write elasticPolicy.minReplicas",
        "spec.replicas.chief: is an unknown field; write replicaSpecs.chief",
        "spec.runPolicy.cleanPods: is an unknown field; write cleanPodPolicy in spec",
    ]
