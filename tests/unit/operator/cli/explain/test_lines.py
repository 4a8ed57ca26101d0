# SPDX-License-Identifier: Apache-2.0
"""What is said of a job's life, and of where its pods go."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from dtjob.api.spec.scheduling import GangProvider
from dtjob.cli.explain.explanation import as_text, as_yaml
from dtjob.cli.explain.lines import elastic, life, placement
from dtjob.objects.defaults import NO_DEFAULTS
from tests.unit.operator.builders import job
from tests.unit.operator.queued import queued_job

POLICY = {"startDeadlineSeconds": 1800, "activeDeadlineSeconds": 86400, "ttlSecondsAfterFinished": 604800}


@pytest.mark.parametrize(
    ("spec", "lines"),
    [
        ({}, ["no deadline, and it stays after its end"]),
        ({"suspend": True}, ["suspended: none of the above is made until spec.suspend is false"]),
        ({"managedBy": "a.b/c", "suspend": True}, ["managed by a.b/c: dtjob leaves the job alone"]),
        (
            {"failurePolicy": {"stallTimeoutSeconds": 600}},
            ["restarts after 10m without a new step (Stalled), counted by maxRestartsWithoutProgress"],
        ),
        (
            POLICY,
            [
                "fails unless all tasks that train run within 30m",
                "fails when it was active for 1d, suspension not counted",
                "is deleted 7d after its end",
            ],
        ),
    ],
)
def test_each_field_of_a_jobs_life_has_its_line(spec: dict[str, Any], lines: list[str]):
    assert life(job(**spec)) == [f"  {line}" for line in lines]


def test_the_explanation_has_a_section_about_the_jobs_life():
    assert "\nLife:\n  no deadline" in "".join(as_text(job()))


def test_a_queue_and_what_the_job_asks_of_it_are_named():
    asks = {"resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    queued = queued_job(replicaSpecs={"chief": asks, "worker": {"replicas": 2, **asks}})
    assert life(queued) == [
        "  waits in queue team-a until Kueue admits it, before any of the above is made; "
        "its Workload asks for 3 cpu, 6Gi memory"
    ]


SCALE = "(kubectl scale dtjob/digits --replicas=N): each change saves and goes on at that checkpoint"


@pytest.mark.parametrize(
    ("policy", "lines"),
    [
        (None, []),
        (
            {"maxReplicas": 8},
            [
                f"4 workers, elastic from 1 to 8 {SCALE}",
                "never trains with fewer than that: without minReplicas it waits for room",
            ],
        ),
        (
            {"minReplicas": 2, "scheduleTimeoutSeconds": 60},
            [
                f"4 workers, elastic from 2 on {SCALE}",
                "without room for all of them for 1m trains with what there is, at least 2; looks for room for the "
                "others 10m later, with placeholder pods",
            ],
        ),
    ],
)
def test_the_explanation_has_the_bounds_of_elastic_workers(policy: dict[str, int] | None, lines: list[str]) -> None:
    made = job(workers=4, elasticPolicy=policy)
    assert elastic(made) == [f"  {line}" for line in lines]
    assert all(line in "".join(as_text(made)) for line in lines)


@pytest.mark.parametrize(
    ("scheduling", "lines"),
    [
        ({}, ["each pod is bound by itself, anywhere"]),
        ({"gang": {}}, ["gang       Kubernetes: 3 of 3 pods are bound at once, or none"]),
        (
            {"gang": {"provider": "Volcano", "volcano": {"queue": "team-a"}}, "priorityClassName": "high"},
            ["gang       Volcano in queue team-a: 3 of 3 pods are bound at once, or none", "priority   high"],
        ),
        ({"topology": {"required": "rack"}}, ["topology   all pods that train on nodes of one rack"]),
        ({"topology": {"preferred": "rack"}}, ["topology   pods that train on nodes of one rack, where there is room"]),
    ],
)
def test_each_field_of_a_gang_has_its_line(scheduling: dict[str, Any], lines: list[str]):
    assert placement(job(evaluator=True, scheduling=scheduling), NO_DEFAULTS) == [f"  {line}" for line in lines]


def test_the_pod_group_is_printed_before_its_pods():
    made = list(yaml.safe_load_all("".join(as_yaml(job(evaluator=True, scheduling={"gang": {}})))))
    kinds = [one["kind"] for one in made]
    assert kinds[-5:] == ["PodGroup", "Pod", "Pod", "Pod", "Pod"]
    assert ["schedulingGroup" in one["spec"] for one in made[-4:]] == [True, True, True, False]


def test_the_operators_default_shows():
    volcano = replace(NO_DEFAULTS, gang_provider=GangProvider.VOLCANO)
    assert "\nPlacement:\n  gang       Volcano: 3 of 3" in "".join(as_text(job(scheduling={"gang": {}}), volcano))
