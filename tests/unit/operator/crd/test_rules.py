"""`problems` refuses what the API server refuses (tests/cluster/test_refusal.py has its answers to the same table)."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.crd.rule import values_at
from dtjob.crd.rules import RULES, problems, to_job
from dtjob.crd.rules_roles import cluster_spec_length
from tests.refusals import BAD, BEFORE, CHANGES, CHANGES_TAKEN, GOOD, Bad, job


def names(rows: list[Bad]) -> list[str]:
    return [row.name for row in rows]


def test_the_table_is_long_enough_and_has_no_name_twice() -> None:
    assert len(BAD) >= 60
    assert len(GOOD) >= 20
    assert len(set(names([*BAD, *CHANGES]))) == len(BAD) + len(CHANGES)


@pytest.mark.parametrize("row", BAD, ids=names(BAD))
def test_bad_manifests_are_refused_with_field_and_mend(row: Bad) -> None:
    said = " | ".join(str(problem) for problem in problems(row.manifest))
    assert said
    for part in row.or_says or row.says:
        assert part in said


@pytest.mark.parametrize("name", GOOD)
def test_good_manifests_have_no_problems(name: str) -> None:
    assert problems(GOOD[name]) == []
    assert to_job(GOOD[name]).metadata.name


@pytest.mark.parametrize("row", CHANGES, ids=names(CHANGES))
def test_changes_are_refused(row: Bad) -> None:
    said = " | ".join(str(problem) for problem in problems(row.manifest, old=BEFORE))
    for part in row.says:
        assert part in said


@pytest.mark.parametrize("name", CHANGES_TAKEN)
def test_failure_and_run_policy_may_change(name: str) -> None:
    assert problems(CHANGES_TAKEN[name], old=BEFORE) == []


def test_each_rule_is_broken_by_some_row() -> None:
    broken = {str(problem) for row in BAD for problem in problems(row.manifest)}
    unseen = [rule.message for rule in RULES if not any(rule.message in said for said in broken)]
    assert unseen == []


def test_every_message_is_one_line_that_an_api_server_takes() -> None:
    for rule in RULES:
        assert "\n" not in rule.message
        assert len(rule.message) <= 2048


def test_several_problems_come_together() -> None:
    found = problems(job(image="", replicas={"chief": {"count": 0}, "wroker": {}}))
    assert [problem.field for problem in found] == [
        "spec.image",
        "spec.replicas.chief.count",
        "spec.replicas.wroker",
    ]


@pytest.mark.parametrize("thing", [None, [], "text", 3, {}, {"apiVersion": "v1", "kind": "Pod"}])
def test_something_else_is_no_manifest(thing: Any) -> None:
    assert problems(thing)


def test_a_job_is_taken_as_well_as_a_dictionary() -> None:
    assert problems(to_job(GOOD["everything"])) == []


def test_a_bare_date_is_text_as_in_kubectl() -> None:
    args = [datetime.date(2026, 11, 21)]
    assert to_job(job(program={"entry": "a.py", "args": args})).spec.program.args == ["2026-11-21"]  # type: ignore[union-attr]


def test_values_at_finds_every_place_of_a_rule() -> None:
    manifest = {"a": {"x": {"l": [{"b": 1}, {"b": 2}]}, "y": {"l": []}, "z": None}}
    assert list(values_at(manifest, "a.*.l[].b")) == [("a.x.l[0].b", 1), ("a.x.l[1].b", 2)]
    assert list(values_at(manifest, "")) == [("", manifest)]


@given(
    name=st.integers(1, 55).map(lambda length: "a" * length),
    counts=st.fixed_dictionaries({role: st.integers(0, 1200) for role in ("chief", "worker", "ps")}),
    port=st.sampled_from([2222, 65535]),
)
def test_the_length_of_the_cluster_spec_is_exact(name: str, counts: dict[str, int], port: int) -> None:
    spec = {
        role: [f"{name}-{role}-{index}.{name}:{port}" for index in range(count)]
        for role, count in counts.items()
        if count
    }
    if spec:
        assert cluster_spec_length(name, counts, port) == len(json.dumps(spec, separators=(",", ":")))


def test_paths_of_rules_are_words() -> None:
    assert all(re.fullmatch(r"[A-Za-z.*\[\]]*", rule.at) for rule in RULES)
