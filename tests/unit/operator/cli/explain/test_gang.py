# SPDX-License-Identifier: Apache-2.0
"""What is said of where a job's pods go."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from dtjob.api.spec.scheduling import GangProvider
from dtjob.cli.explain.explanation import as_text, as_yaml
from dtjob.cli.explain.gang import gang_lines
from dtjob.objects.defaults import NO_DEFAULTS
from tests.unit.operator.builders import job


@pytest.mark.parametrize(
    ("scheduling", "lines"),
    [
        ({}, ["each pod is bound by itself, anywhere"]),
        ({"gang": {}}, ["gang       Kubernetes: 3 of 3 pods are bound at once, or none"]),
        (
            {
                "gang": {"provider": "Volcano", "volcano": {"queue": "team-a"}},
                "priorityClassName": "high",
            },
            ["gang       Volcano in queue team-a: 3 of 3 pods are bound at once, or none", "priority   high"],
        ),
        ({"topology": {"required": "rack"}}, ["topology   all pods that train on nodes of one rack"]),
        (
            {"topology": {"preferred": "rack"}},
            ["topology   pods that train on nodes of one rack, where there is room"],
        ),
    ],
)
def test_each_field_of_a_gang_has_its_line(scheduling: dict[str, Any], lines: list[str]):
    assert gang_lines(job(evaluator=True, scheduling=scheduling), NO_DEFAULTS) == [f"  {line}" for line in lines]


def test_the_pod_group_is_printed_before_its_pods():
    made = list(yaml.safe_load_all("".join(as_yaml(job(evaluator=True, scheduling={"gang": {}})))))
    kinds = [one["kind"] for one in made]
    assert kinds[-5:] == ["PodGroup", "Pod", "Pod", "Pod", "Pod"]
    assert ["schedulingGroup" in one["spec"] for one in made[-4:]] == [True, True, True, False]


def test_the_operators_default_shows():
    volcano = replace(NO_DEFAULTS, gang_provider=GangProvider.VOLCANO)
    assert "\nPlacement:\n  gang       Volcano: 3 of 3" in "".join(as_text(job(scheduling={"gang": {}}), volcano))
