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


@pytest.mark.parametrize("path", ["spec.replica", "spec.replicaSpecs.chief.counts", "spec", ""])
def test_a_field_that_no_other_api_has_gets_no_answer(path: str) -> None:
    assert hints.instead(path) is None


def test_a_field_of_another_api_has_a_hint_in_every_role_and_rule() -> None:
    assert hints.instead("spec.replicaSpecs.ps.restartPolicy") == "write failurePolicy.rules with these roles"
    assert hints.instead("spec.replicaSpecs.chief.replicas") == "remove it: there is always one chief"
    assert hints.instead("spec.failurePolicy.rules[17].targetReplicatedJobs") == "write roles"


def test_each_known_field_within_an_unknown_block_has_a_hint_and_others_have_none() -> None:
    found = problems(job(replicaSpecs=..., runPolicy={"backoffLimit": 1, "schedulingPolicy": {"queue": "a"}, "zzz": 1}))
    assert [str(problem) for problem in found] == [
        "spec.replicaSpecs: is required; add it",
        "spec.runPolicy.backoffLimit: is an unknown field; write failurePolicy.maxRestarts",
        "spec.runPolicy.schedulingPolicy.queue: is an unknown field; write scheduling.gang.volcano.queue",
    ]
