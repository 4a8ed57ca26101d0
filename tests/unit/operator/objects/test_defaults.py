# SPDX-License-Identifier: Apache-2.0
"""The operator's default image and pod labels: who wins, and what a job is told that has no image."""

import json
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects import labels
from dtjob.objects.defaults import NO_DEFAULTS, Defaults, PodDefaults, lacks_image, parse_label
from dtjob.objects.gangs import pod_group
from dtjob.objects.kueue import priority_class_of
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.pod import pod
from dtjob.objects.topology import chief_task
from dtjob.plan.actions import Create, Plan
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

OLD, NEW = Defaults("trainer:1"), Defaults("trainer:2")


def job(**spec: Any) -> Job:
    return builders.job(**{"image": None, **spec})


def images(made: Plan) -> list[str | None]:
    pods = [one.manifest for one in made.actions if isinstance(one, Create) and one.kind == "Pod"]
    return [one["spec"]["containers"][0].get("image") for one in pods]


def stored(made: Plan) -> Children:
    return Children(tuple(builders.stored(one.manifest) for one in made.actions if isinstance(one, Create)))


def image_of_chief(job: Job, defaults: Defaults) -> str | None:
    made: Manifest = pod(job, builders.task("chief-0"), 0, defaults)
    image: str | None = made["spec"]["containers"][0].get("image")
    return image


def test_the_job_wins_then_what_it_began_with_then_the_default() -> None:
    assert image_of_chief(builders.job(image="own:1"), OLD) == "own:1"
    assert image_of_chief(job(status={"image": "trainer:0"}), OLD) == "trainer:0"
    assert image_of_chief(job(), OLD) == "trainer:1"
    assert image_of_chief(job(), NO_DEFAULTS) is None


def test_a_jobs_later_pods_have_the_image_that_it_began_with() -> None:
    began = plan(job(), Children(), NOW, OLD)
    assert images(began) == ["trainer:1"] * 3
    assert began.status["image"] == "trainer:1"
    running = builders.with_status(job(), began.status)
    children = stored(began)
    for one in children.objects:
        if one["kind"] == "Pod":
            one["status"] = builders.running()
    for upgraded in (NEW, NO_DEFAULTS):
        status = plan(running, children, at(1), upgraded).status
        assert (status["phase"], status["image"]) == ("Running", "trainer:1")
        again = plan(builders.with_status(job(), status), children, at(1), upgraded)
        assert (again.actions, again.status) == ((), None)
    lost = Children(tuple(one for one in children.objects if one["metadata"]["name"] != "digits-worker-1-0"))
    assert images(plan(running, lost, at(2), NEW)) == ["trainer:1"]


def test_an_image_of_the_jobs_own_is_not_written_into_the_status() -> None:
    status = plan(builders.job(), Children(), NOW, OLD).status
    assert status is not None
    assert "image" not in status


def test_a_job_without_any_image_waits_and_says_what_to_write() -> None:
    made = plan(job(), Children(), NOW)
    assert made.actions == ()
    assert (made.status["phase"], made.status["reason"], made.status["ready"]) == ("Pending", "ImageMissing", "0/3")
    (blocked,) = (one for one in made.status["conditions"] if one["status"] == "True")
    assert (blocked["type"], blocked["reason"]) == ("Blocked", "ImageMissing")
    assert [event.reason for event in made.events] == ["ImageMissing"]
    waiting = builders.with_status(job(), made.status)
    assert plan(waiting, Children(), at(60)) == Plan()
    healed = plan(waiting, Children(), at(90), NEW)
    assert images(healed) == ["trainer:2"] * 3
    assert (healed.status["reason"], healed.status["image"]) == ("WaitingForPods", "trainer:2")
    assert {one["status"] for one in healed.status["conditions"]} == {"False"}


def test_an_ended_job_needs_no_image() -> None:
    ended = {"phase": "Succeeded", "completionTime": "2026-11-21T10:00:00Z", "reason": "Completed", "conditions": []}
    status = plan(job(status=ended), Children(), at(1)).status
    assert status["phase"] == "Succeeded"


def test_templates_that_name_their_images_are_enough_when_all_do() -> None:
    own = {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "own:1"}]}}}
    sidecar = {"template": {"spec": {"containers": [{"name": "log", "image": "shipper:1"}]}}}
    every = job(replicaSpecs={"chief": own, "worker": own})
    assert not lacks_image(every, NO_DEFAULTS)
    assert images(plan(every, Children(), NOW)) == ["own:1", "own:1"]
    assert lacks_image(job(replicaSpecs={"chief": own, "worker": {}}), NO_DEFAULTS)
    assert lacks_image(job(replicaSpecs={"chief": sidecar, "worker": own}), NO_DEFAULTS)
    assert images(plan(job(replicaSpecs={"chief": own, "worker": {}}), Children(), NOW, OLD)) == ["own:1", "trainer:1"]


def test_default_labels_yield_to_those_of_the_template_and_of_dtjob() -> None:
    replicas = {"chief": {}, "worker": {"template": {"metadata": {"labels": {"team": "vision"}}}}}
    defaults = Defaults(pod_labels={"team": "ml", "cost-centre": "7"})
    worker, chief = (
        labels.of(pod(builders.job(replicaSpecs=replicas), builders.task(one), 0, defaults))
        for one in ("worker-0", "chief-0")
    )
    assert (worker["team"], worker["cost-centre"], chief["team"]) == ("vision", "7", "ml")
    assert worker[labels.ROLE] == "worker"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("team=vision", ("team", "vision")),
        ("example.com/cost-centre=7", ("example.com/cost-centre", "7")),
        ("a=", ("a", "")),
        ("app.kubernetes.io/name=x", ("app.kubernetes.io/name", "x")),
    ],
)
def test_labels_that_are_taken(text: str, label: tuple[str, str]) -> None:
    assert parse_label(text) == label


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("team", "is not KEY=VALUE"),
        ("=x", "is no label's name"),
        ("-a=x", "is no label's name"),
        ("Example.com/a=x", "is no label's name"),
        ("a/b/c=x", "is no label's name"),
        ("/a=x", "is no label's name"),
        (f"{'a' * 64}=x", "is no label's name"),
        (f"{'a' * 254}/b=x", "is no label's name"),
        ("a=b c", "is no label's value"),
        ("a=b=c", "is no label's value"),
        (f"a={'b' * 64}", "is no label's value"),
        ("training.dtjob.dev/role=ps", "belongs to dtjob"),
        ("app.kubernetes.io/managed-by=x", "belongs to dtjob"),
    ],
)
def test_labels_that_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_label(text)


GIVEN = {
    "annotations": {"a": "default", "b": "default"},
    "env": [{"name": "A", "value": "default"}, {"name": "B", "value": "default"}],
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"pool": "training", "zone": "x"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "priorityClassName": "batch",
}
DEFAULTS = Defaults(pods=PodDefaults.parse(json.dumps(GIVEN)))
TEMPLATE = {
    "metadata": {"annotations": {"a": "own"}},
    "spec": {
        "nodeSelector": {"pool": "own"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "own"}],
        "imagePullSecrets": [{"name": "own"}],
        "containers": [{"name": "tensorflow", "env": [{"name": "A", "value": "own"}]}],
    },
}


def chief(template: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
    """The chief's pod."""
    spec = {"template": template} if template else {}
    one = builders.job(replicaSpecs={"chief": spec, "worker": {"replicas": 1}}, **fields)
    return pod(one, chief_task(one), 0, DEFAULTS)


def variables(made: dict[str, Any]) -> dict[str, str]:
    """The values of A and B."""
    return {one["name"]: one["value"] for one in made["spec"]["containers"][0]["env"] if one["name"] in ("A", "B")}


def test_a_pod_gets_what_its_template_leaves_out() -> None:
    made = chief(None)
    assert made["metadata"]["annotations"] == GIVEN["annotations"]
    assert made["spec"]["nodeSelector"] == GIVEN["nodeSelector"]
    assert made["spec"]["tolerations"][0] == {"key": "gpu", "operator": "Exists"}
    assert made["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert made["spec"]["priorityClassName"] == "batch"
    assert variables(made) == {"A": "default", "B": "default"}


def test_values_of_the_template_apply() -> None:
    made = chief(TEMPLATE, scheduling={"priorityClassName": "own"})
    assert made["metadata"]["annotations"] == {"a": "own", "b": "default"}
    assert made["spec"]["nodeSelector"] == {"pool": "own", "zone": "x"}
    assert [one["key"] for one in made["spec"]["tolerations"]][:2] == ["gpu", "own"]
    assert made["spec"]["imagePullSecrets"] == [{"name": "own"}]
    assert made["spec"]["priorityClassName"] == "own"
    assert variables(made) == {"A": "own", "B": "default"}


def container(own: dict[str, Any] | None, **given: Any) -> dict[str, Any]:
    """The training container of the chief, whose role has these resources, under these defaults."""
    role = {"resources": own} if own else {}
    one = builders.job(replicaSpecs={"chief": role, "worker": {"replicas": 1}})
    made = pod(one, chief_task(one), 0, Defaults(pods=PodDefaults.parse(json.dumps(given))))
    found: dict[str, Any] = made["spec"]["containers"][0]
    return found


OWN_LIMIT = {"limits": {"memory": "2Gi"}}
OWN_REQUESTS = {"requests": {"cpu": "3", "ephemeral-storage": "1Gi"}}


@pytest.mark.parametrize(
    ("own", "whole"),
    [
        (None, {"requests": {"cpu": 1, "memory": "4Gi"}, "limits": {"ephemeral-storage": "9Gi"}}),
        (OWN_LIMIT, {"requests": {"cpu": 1}, "limits": {"ephemeral-storage": "9Gi", "memory": "2Gi"}}),
        (OWN_REQUESTS, {"requests": {"cpu": "3", "ephemeral-storage": "1Gi", "memory": "4Gi"}}),
    ],
)
def test_default_resources_are_for_those_that_the_job_does_not_name(own: Any, whole: dict[str, Any]) -> None:
    """A default request above the limit of a job would be refused."""
    default = {"requests": {"cpu": 1, "memory": "4Gi"}, "limits": {"ephemeral-storage": "9Gi"}}
    assert container(own, resources=default)["resources"] == whole


def test_resources_that_no_amount_has_are_kept() -> None:
    claims = {"claims": [{"name": "gpu"}]}
    template = {"spec": {"containers": [{"name": "tensorflow", "resources": claims}]}}
    one = builders.job(replicaSpecs={"chief": {"template": template}, "worker": {"replicas": 1}})
    given = Defaults(pods=PodDefaults.parse('{"resources": {"requests": {"cpu": 1}}}'))
    found = pod(one, chief_task(one), 0, given)["spec"]["containers"][0]["resources"]
    assert found == {**claims, "requests": {"cpu": 1}}
    assert "resources" not in container(None)


def test_a_variable_may_come_from_a_secret() -> None:
    secret = {"secretKeyRef": {"name": "pip", "key": "url", "optional": True}}
    found = container(None, env=[{"name": "PIP_INDEX_URL", "valueFrom": secret}, {"name": "A", "value": ""}])
    assert {"name": "PIP_INDEX_URL", "valueFrom": secret} in found["env"]
    assert {"name": "A", "value": ""} in found["env"]


def test_the_operators_security_context_stands_in_place_of_dtjobs_and_below_the_templates() -> None:
    one = builders.job(
        replicaSpecs={"chief": {"template": {"spec": {"securityContext": {"fsGroup": 7}}}}, "worker": {}}
    )
    given = Defaults(pods=PodDefaults.parse('{"securityContext": {"runAsNonRoot": true}}'))
    chief, worker = (pod(one, builders.task(id_), 0, given)["spec"] for id_ in ("chief-0", "worker-0"))
    assert worker["securityContext"] == {"runAsNonRoot": True}
    assert chief["securityContext"] == {"runAsNonRoot": True, "fsGroup": 7}


def test_a_gang_and_a_workload_have_the_priority_of_their_pods() -> None:
    one = builders.job(scheduling={"gang": {}})
    group = pod_group(one, DEFAULTS)
    assert group["spec"]["priorityClassName"] == "batch"
    assert priority_class_of(one, DEFAULTS) == ("PriorityClass", "batch")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "the text"),
        ('{"labels": {}}', "labels"),
        ('{"env": [{"name": ""}]}', "env.0.name"),
        ('{"nodeSelector": {"a": 1}}', "nodeSelector.a"),
        ("{", "the text"),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}: "):
        PodDefaults.parse(text)
