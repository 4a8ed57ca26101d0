# SPDX-License-Identifier: Apache-2.0
"""`problems` refuses what the API server refuses (tests/cluster/test_refusal.py has its answers to the same table)."""

import datetime
from typing import Any

import pytest

from dtjob.crd.answers.problems import problems, to_job, useless_fields
from dtjob.crd.rules.registry import RULES
from dtjob.crd.rules.useless import WARNINGS
from dtjob.plan.actions import Create
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.refusals import BAD, BEFORE, CHANGES, CHANGES_TAKEN, GOOD, ONLY_VALIDATE, WARNED, Bad, job
from tests.refusals.elastic import ELASTIC_BEFORE, ELASTIC_CHANGES, ELASTIC_CHANGES_TAKEN
from tests.refusals.life import SUSPENDED, SUSPENDED_CHANGES, SUSPENDED_CHANGES_TAKEN
from tests.refusals.manifests import Manifest, pod, training
from tests.unit.operator.builders import NOW
from tests.unit.operator.crd.changed import problems_of_change

_OF_CHANGES = (
    (BEFORE, CHANGES, CHANGES_TAKEN),
    (SUSPENDED, SUSPENDED_CHANGES, SUSPENDED_CHANGES_TAKEN),
    (ELASTIC_BEFORE, ELASTIC_CHANGES, ELASTIC_CHANGES_TAKEN),
)
"""The job before, changes that are refused, and changes that are taken."""
_CHANGES = [(row, before) for before, refused, _ in _OF_CHANGES for row in refused]
_TAKEN = {name: (changed, before) for before, _, taken in _OF_CHANGES for name, changed in taken.items()}
_SAID: dict[str, str] = {}
"""By row. Two tests look at each row, and a look takes 10 ms."""


def names(rows: list[Bad]) -> list[str]:
    return [row.name for row in rows]


def said_of(row: Bad) -> str:
    """What is said of the row's manifest."""
    if row.name not in _SAID:
        found = useless_fields(row.manifest) if row.warned else problems(row.manifest)
        _SAID[row.name] = " | ".join(str(problem) for problem in found)
    return _SAID[row.name]


def test_the_table_is_long_enough_and_has_no_name_twice() -> None:
    assert len(BAD) >= 400
    assert len(GOOD) >= 20
    rows = [*BAD, *WARNED, *CHANGES, *ONLY_VALIDATE]
    assert len(set(names(rows))) == len(rows)


@pytest.mark.parametrize("row", [*BAD, *ONLY_VALIDATE], ids=names([*BAD, *ONLY_VALIDATE]))
def test_bad_manifests_are_refused_with_field_and_remedy(row: Bad) -> None:
    said = said_of(row)
    assert said
    for part in row.or_says or row.says:
        assert part in said


@pytest.mark.parametrize("row", WARNED, ids=names(WARNED))
def test_useless_fields_have_a_warning_and_change_no_plan(row: Bad) -> None:
    assert problems(row.manifest) == []
    for part in row.or_says or row.says:
        assert part in said_of(row)
    taken = to_job({**row.manifest, "metadata": {**row.manifest["metadata"], "namespace": "a", "uid": "u"}})
    made = [one.manifest for one in plan(taken, Children(), NOW).actions if isinstance(one, Create)]
    assert {"Pod", "Service", "ConfigMap"} <= {one["kind"] for one in made}
    assert all(one["spec"]["restartPolicy"] == "Never" for one in made if one["kind"] == "Pod")


def test_each_rule_is_broken_by_some_row() -> None:
    said = " | ".join(said_of(row) for row in (*BAD, *WARNED))
    assert [rule.message for rule in (*RULES, *WARNINGS) if rule.message.split("{}")[-1] not in said] == []


@pytest.mark.parametrize("name", GOOD)
def test_good_manifests_have_no_problems(name: str) -> None:
    assert problems(GOOD[name]) == []
    assert useless_fields(GOOD[name]) == []
    assert to_job(GOOD[name]).metadata.name


@pytest.mark.parametrize(("row", "before"), _CHANGES, ids=[row.name for row, _ in _CHANGES])
def test_bad_changes_are_refused(row: Bad, before: Manifest) -> None:
    said = " | ".join(str(problem) for problem in problems_of_change(row.manifest, before))
    for part in row.says:
        assert part in said


@pytest.mark.parametrize(("taken", "before"), _TAKEN.values(), ids=_TAKEN)
def test_allowed_changes_are_accepted(taken: Manifest, before: Manifest) -> None:
    assert problems_of_change(taken, before) == []


def test_wrong_fields_and_broken_rules_are_named_in_one_run() -> None:
    manifest = job(
        "multiworkermirrored",
        program={"entrypoint": "train.py --epochs 5"},
        replicaSpecs={"worker": {"replicas": 0, "template": {"spec": {"nodeSelecter": {}}}}},
        checkpoint={"storage": {"uri": "s3//bucket"}, "maxToKep": 3},
        restartPolicy="OnFailure",
    )
    manifest["metadata"]["name"] = "Bad_Name"
    assert {problem.field for problem in problems(manifest)} == {
        "metadata.name",
        "spec.strategy",
        "spec.program.entrypoint",
        "spec.replicaSpecs.worker.replicas",
        "spec.replicaSpecs.worker.template.spec.nodeSelecter",
        "spec.checkpoint.storage.uri",
        "spec.checkpoint.maxToKep",
        "spec.restartPolicy",
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"chekpoint": {"storage": {"uri": "gs://a/b"}}, "replicaSpecs": {"chief": {}, "evaluator": {}}},
        {"checkpoint": {"storage": {"url": "gs://a/b"}}},
        {"replicaSpecs": {"Worker": {"replicas": 2}}},
        {"strategy": "Mirored", "replicaSpecs": {"chief": {}, "worker": {"replicas": 2}}},
        {"elasticPolicy": {"minReplicas": "2"}, "replicaSpecs": {"chief": {}, "worker": {"replicas": 1}}},
    ],
)
def test_a_rule_that_needs_a_wrong_field_is_not_looked_at(spec: dict[str, Any]) -> None:
    """What it would say is not so once the field is corrected."""
    assert len(problems(job(**spec))) == 1


@pytest.mark.parametrize("thing", [None, [], "text", 3, {}, {"apiVersion": "v1", "kind": "Pod"}])
def test_something_else_is_no_manifest(thing: Any) -> None:
    assert problems(thing)


def test_the_problem_of_a_tfjob_names_dtjob_convert() -> None:
    said = [str(problem) for problem in problems({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "spec": {}})]
    assert said == [
        "apiVersion: must be training.dtjob.dev/v1beta1, not 'kubeflow.org/v1'",
        "kind: must be DistributedTrainingJob, not 'TFJob'; `dtjob convert FILE` writes one from a TFJob",
    ]


def test_a_bare_date_is_text_as_in_kubectl() -> None:
    args = [datetime.date(2026, 11, 21)]
    assert to_job(job(program={"entrypoint": "a.py", "args": args})).spec.program.args == ["2026-11-21"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("replicas", "field"),
    [
        (training(resources={"limits": [{"nvidia.com/gpu": 1}]}), "containers[0].resources.limits: must be a mapping"),
        (
            training(securityContext={"capabilities": ["SYS_PTRACE"]}),
            "containers[0].securityContext.capabilities: must",
        ),
        (pod(affinity={"podAffinity": []}), "affinity.podAffinity: must be a mapping"),
    ],
)
def test_a_field_of_a_template_that_dtjob_reads_must_have_the_form_of_a_pods_field(
    replicas: Manifest, field: str
) -> None:
    """The definition is too large to say it; the operator answers in the job's status."""
    assert str(problems(job(replicaSpecs=replicas))[0]).startswith(f"spec.replicaSpecs.worker.template.spec.{field}")
