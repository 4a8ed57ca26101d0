# SPDX-License-Identifier: Apache-2.0
"""The CustomResourceDefinition: what an API server takes, with every rule at its place."""

from __future__ import annotations

import json

from dtjob.crd import definition
from dtjob.crd.rules.registry import RULES, UNCHANGING

LARGEST = 192 * 1024
"""Bytes. An object's annotations can hold 256 KiB, and fields are only ever added."""


def test_plain_kubectl_apply_can_take_it() -> None:
    """It keeps what it applied in an annotation, as compact JSON."""
    size = len(json.dumps(definition.crd(), separators=(",", ":"), ensure_ascii=False).encode())
    assert size <= LARGEST, "shorten the texts in api/spec/pod_template.py first: each is there four or eight times"


def test_the_definition_has_its_names_columns_and_selectable_fields() -> None:
    names = definition.crd()["spec"]["names"]
    assert (names["shortNames"], names["categories"]) == (["dtj", "dtjob", "dtjobs"], ["all", "training"])
    columns = definition.crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [c["name"].upper() for c in columns if "priority" not in c] == [
        *("PHASE", "READY", "STEP", "RESTARTS", "REASON", "AGE")
    ]
    assert [c["name"].upper() for c in columns if "priority" in c] == [
        *("STRATEGY", "PROGRESS(%)", "ETA(S)", "CHECKPOINT", "GOODPUT(%)", "WORKERS")
    ]
    selectable = definition.crd()["spec"]["versions"][0]["selectableFields"]
    assert [one["jsonPath"] for one in selectable] == [".status.phase", ".spec.strategy"]


def test_each_rule_is_in_the_schema_at_its_path() -> None:
    properties = definition.schema()["properties"]
    everywhere = list(definition._parts(definition.schema(), "spec.replicaSpecs.*.template.metadata.labels"))
    assert len(everywhere) == 4
    assert all("belong to dtjob" in labels["x-kubernetes-validations"][0]["message"] for labels in everywhere)
    messages = {field.message for field in UNCHANGING if field.field != "replicas"}
    unchanging = [rule for rule in properties["spec"]["x-kubernetes-validations"] if rule["message"] in messages]
    assert len(unchanging) == len(UNCHANGING) - 1
    # That of the replicas is at the root, as only there the status is seen.
    assert len(definition.schema()["x-kubernetes-validations"]) == len([rule for rule in RULES if rule.at == ""]) + 1
