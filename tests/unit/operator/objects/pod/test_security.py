# SPDX-License-Identifier: Apache-2.0
"""Security contexts: a template's keys win one by one, and every container of the pod gets what is left out."""

from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects.pod.pod import pod
from dtjob.objects.pod.security import CONTAINER_SECURITY, POD_SECURITY, pod_security, with_security
from tests.unit.operator import builders


def test_a_key_of_a_templates_security_context_leaves_the_other_defaults():
    """Setting fsGroup once dropped runAsNonRoot and seccomp without a word."""
    assert pod_security({"fsGroup": 2000}) == {**POD_SECURITY, "fsGroup": 2000}
    made = with_security({"name": "tensorflow", "securityContext": {"readOnlyRootFilesystem": True}})
    assert made["securityContext"] == {**CONTAINER_SECURITY, "readOnlyRootFilesystem": True}


@pytest.mark.parametrize("left_empty", [None, {}])
def test_a_context_that_is_left_empty_is_as_if_left_out(left_empty: dict[str, Any] | None):
    assert pod_security(left_empty) == POD_SECURITY
    assert with_security({"name": "a", "securityContext": left_empty})["securityContext"] == CONTAINER_SECURITY


def test_values_win_whole_where_they_are_one_choice():
    profile = {"type": "Localhost", "localhostProfile": "a.json"}
    assert pod_security({"seccompProfile": profile})["seccompProfile"] == profile


def test_a_null_leaves_the_key_to_the_cluster():
    """Where the cluster itself gives each namespace a range of users."""
    assert pod_security({"runAsUser": None, "fsGroup": None}).keys() == POD_SECURITY.keys() - {"runAsUser", "fsGroup"}
    made = with_security({"name": "a", "securityContext": {"capabilities": None}})
    assert made["securityContext"] == {"allowPrivilegeEscalation": False}


@pytest.mark.parametrize(
    ("user", "wanted"),
    [
        ({"add": ["NET_BIND_SERVICE"]}, {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
        ({"drop": ["NET_RAW"]}, {"drop": ["ALL", "NET_RAW"]}),
        ({"drop": ["ALL"]}, {"drop": ["ALL"]}),
        ({"drop": None, "add": ["CHOWN"]}, {"add": ["CHOWN"]}),
    ],
)
def test_capabilities_that_a_template_adds_are_kept_beside_the_dropped_ones(user, wanted):
    assert with_security({"name": "a", "securityContext": {"capabilities": user}})["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": wanted,
    }


def test_root_that_is_asked_for_is_not_held_back():
    """The kubelet never starts a root container of a pod with runAsNonRoot."""
    assert "runAsNonRoot" not in pod_security({"runAsUser": 0})
    assert pod_security({"runAsUser": 0, "runAsNonRoot": True})["runAsNonRoot"] is True
    assert with_security({"name": "a", "securityContext": {"runAsUser": 0}})["securityContext"]["runAsNonRoot"] is False


@pytest.mark.parametrize("user", [{"privileged": True}, {"capabilities": {"add": ["CAP_SYS_ADMIN"]}}])
def test_allow_privilege_escalation_is_left_out_where_an_api_server_refuses_it(user: dict[str, Any]):
    assert "allowPrivilegeEscalation" not in with_security({"name": "a", "securityContext": user})["securityContext"]


def test_every_container_gets_it_and_the_job_stays_as_it_is():
    spec = {
        "securityContext": {"fsGroup": 2000},
        "initContainers": [{"name": "get", "image": "busybox"}],
        "containers": [{"name": "log", "image": "busybox", "securityContext": {"runAsUser": 2000}}],
    }
    job: Job = builders.job(replicaSpecs={"chief": {"template": {"spec": spec}}, "worker": {"replicas": 1}})
    before = job.model_dump()
    made = pod(job, builders.task("chief-0"), 0)["spec"]
    assert made["securityContext"] == {**POD_SECURITY, "fsGroup": 2000}
    assert [one["name"] for one in made["containers"]] == ["tensorflow", "log"]
    assert made["containers"][0]["securityContext"] == CONTAINER_SECURITY
    assert made["containers"][1]["securityContext"] == {**CONTAINER_SECURITY, "runAsUser": 2000}
    assert made["initContainers"][0]["securityContext"] == CONTAINER_SECURITY
    assert job.model_dump() == before
