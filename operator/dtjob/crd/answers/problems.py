# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a manifest: all that an API server would refuse, in the job and in its pods, without one.

An API server looks at rules between fields once each field by itself is right. Here a rule that reads no wrong field is
looked at too, so that one run names all faults.

The test of refusals sends every manifest of its table both ways and wants the same verdict. Random changes of them are
sent too (tests/cluster/test_mutations.py).
"""

import json
from collections.abc import Iterable

from pydantic import ValidationError

from dtjob.api.job import API_VERSION, KIND, Job
from dtjob.crd.answers import faults, hints
from dtjob.crd.answers.field_errors import (
    Problem,
    in_words,
    open_block_errors,
    repeated_entries,
    with_defaults,
    without_empty_fields,
)
from dtjob.crd.answers.metadata import metadata_problems
from dtjob.crd.answers.pod_problems import rules_of_pods, types_in_pods
from dtjob.crd.answers.schemas import manifest_schema
from dtjob.crd.rule import Rule, Value, values_at
from dtjob.crd.rules.registry import RULES
from dtjob.crd.rules.useless import WARNINGS


def problems(manifest: Value) -> list[Problem]:
    """Everything that an API server would refuse in this manifest or in its pods; empty if it is fine."""
    try:
        text = json.dumps(manifest, default=str)  # as kubectl reads YAML: a bare date is text
    except (TypeError, ValueError) as error:
        return [Problem("", f"is not a manifest: {error}")]
    manifest = without_empty_fields(json.loads(text), manifest_schema())
    return _kind_problems(manifest) or _of_job(manifest)


def _of_job(manifest: Value) -> list[Problem]:
    found = metadata_problems(manifest.get("metadata"))
    try:
        Job.model_validate_json(json.dumps(manifest), strict=True)
    except ValidationError as error:
        found += in_words(error)
    found = list(dict.fromkeys(found))  # the types of a name and a namespace are looked at in both
    schema = manifest_schema()["properties"]["spec"]
    right = faults.without(manifest, found)
    found += faults.others(open_block_errors(right.get("spec", {}), schema, "spec"), found)
    right = faults.without(right, found)
    found += [*repeated_entries(right.get("spec", {}), schema, "spec"), *broken_rules(right, faults.Faults(found))]
    found += faults.others(types_in_pods(right), found)
    return found or rules_of_pods(manifest)


def to_job(manifest: Value) -> Job:
    """The job of a manifest without problems, read as the API server reads it."""
    manifest = json.loads(json.dumps(manifest, default=str))
    return Job.model_validate(without_empty_fields(manifest, manifest_schema()))


def broken_rules(manifest: Value, wrong: faults.Faults = faults.NONE) -> list[Problem]:
    """The rules between fields that a manifest breaks, but those that `wrong` fields spoil."""
    return _broken(RULES, manifest, wrong)


def useless_fields(manifest: Value) -> list[Problem]:
    """What a manifest without problems says in vain."""
    return _broken(WARNINGS, without_empty_fields(json.loads(json.dumps(manifest, default=str)), manifest_schema()))


def _broken(rules: Iterable[Rule], manifest: Value, wrong: faults.Faults = faults.NONE) -> list[Problem]:
    stored = with_defaults(manifest, manifest_schema())
    return [
        Problem(".".join(filter(None, (path, rule.field))), rule.said_of(value))
        for rule in rules
        if not wrong.spoil(rule.reads)
        for path, value in values_at(stored, rule.at)
        if not rule.holds(value)
    ]


def _kind_problems(manifest: Value) -> list[Problem]:
    """A manifest of something else."""
    if not isinstance(manifest, dict):
        return [Problem("", "is not a manifest: the top must be a mapping with apiVersion, kind, metadata and spec")]
    return [
        Problem(field, f"must be {wanted}, not {manifest.get(field)!r}{hints.of_kind(manifest.get(field))}")
        for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND))
        if manifest.get(field) != wanted
    ]
