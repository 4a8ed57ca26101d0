# SPDX-License-Identifier: Apache-2.0
"""When shared objects are made, when repaired, and when left alone."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from dtjob.objects import shared
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Repair
from dtjob.plan.pods.shared_objects import keep_shared
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders

JOB = builders.job()


def asked(*there: Manifest) -> list[str]:
    seen = replace(builders.situation(JOB), children=Children(there))
    words = {Create: "create", Repair: "repair"}
    return [f"{words[type(action)]} {action.kind}" for action in keep_shared(seen)]


def all_there() -> list[Manifest]:
    return [builders.stored(one) for one in shared.shared_objects(JOB)]


def test_missing_shared_objects_are_created_and_correct_ones_are_left_alone():
    assert asked() == ["create Service", "create ConfigMap", "create NetworkPolicy"]
    assert asked(*all_there()) == []
    assert asked(*all_there()[1:]) == ["create Service"]


def test_a_shared_object_that_pods_had_is_created_again():
    pods = builders.all_pods(JOB).values()
    (made,) = keep_shared(builders.situation(JOB, *pods, *all_there()[:2]))
    assert isinstance(made, Create)
    assert (made.kind, made.again) == ("NetworkPolicy", True)
    first = keep_shared(builders.situation(JOB))
    assert [one.again for one in first if isinstance(one, Create)] == [False] * 3


def test_a_drifted_shared_object_is_repaired_and_the_field_is_named():
    service, config_map, policy = all_there()
    policy["spec"]["ingress"] = [{}]
    assert asked(service, config_map, policy) == ["repair NetworkPolicy"]
    (action,) = keep_shared(replace(builders.situation(JOB), children=Children((service, config_map, policy))))
    assert isinstance(action, Repair)
    assert (action.field, action.there) == ("spec.ingress", policy)
    policy["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    assert asked(service, config_map, policy) == []  # it is made anew once it is gone


def test_an_object_that_the_job_does_not_own_is_not_repaired():
    service, config_map, policy = all_there()
    strange = deepcopy(service)
    strange["metadata"]["ownerReferences"] = []
    strange["spec"]["selector"] = {}
    assert asked(strange, config_map, policy) == ["create Service"]  # which will say whose it is
