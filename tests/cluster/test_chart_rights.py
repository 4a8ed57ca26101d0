# SPDX-License-Identifier: Apache-2.0
"""Who may do what with jobs once the chart is installed, by Kubernetes' own roles in a namespace."""

import json

import pytest

from tests.cluster.support.chart import AuditedControlPlane, Helm, install, objects, wait_until
from tests.cluster.support.jobs import job
from tools.cluster.rest import Api

JOBS = "distributedtrainingjobs.training.dtjob.dev"
READS = ("get", "list", "watch")
WRITES = ("create", "update", "patch", "delete", "deletecollection")


@pytest.fixture(scope="module")
def cluster(audited_cluster: AuditedControlPlane) -> AuditedControlPlane:
    return audited_cluster


@pytest.fixture(scope="module")
def api(cluster: AuditedControlPlane) -> Api:
    return Api(cluster.kubeconfig)


def may(cluster: AuditedControlPlane, user: str, verb: str, namespace: str, *options: str) -> bool:
    asked = ("auth", "can-i", verb, JOBS, f"--as={user}", f"--namespace={namespace}", *options)
    return cluster.kubectl(*asked, check=False).stdout.strip() == "yes"


def test_editors_of_a_namespace_have_jobs_there_and_viewers_see_them(
    helm: Helm, cluster: AuditedControlPlane, api: Api, namespace: str
) -> None:
    install(helm, api)
    for role, user in (("admin", "admin"), ("edit", "editor"), ("view", "viewer")):
        bound = (f"rolebinding/{role}", f"--clusterrole={role}", f"--user={user}", f"--namespace={namespace}")
        cluster.kubectl("create", *bound[0].split("/"), *bound[1:])
    wait_until(lambda: may(cluster, "editor", "create", namespace), "the rights are added to the role edit")
    wait_until(lambda: may(cluster, "viewer", "get", namespace), "and to the role view")
    for user in ("admin", "editor"):
        assert {verb for verb in (*READS, *WRITES) if may(cluster, user, verb, namespace)} == {*READS, *WRITES}
        assert not may(cluster, user, "update", namespace, "--subresource=status")
        assert may(cluster, user, "update", namespace, "--subresource=scale")
    assert may(cluster, "viewer", "get", namespace, "--subresource=scale")
    assert not may(cluster, "viewer", "update", namespace, "--subresource=scale")
    assert {verb for verb in (*READS, *WRITES) if may(cluster, "viewer", verb, namespace)} == set(READS)
    assert not may(cluster, "editor", "create", "default")

    manifest = json.dumps(job())
    as_editor, as_viewer = (("--as", user, "--namespace", namespace) for user in ("editor", "viewer"))
    refused = cluster.kubectl("create", "--filename=-", *as_viewer, stdin=manifest, check=False)
    assert refused.returncode == 1
    assert "Forbidden" in refused.stderr
    cluster.kubectl("create", "--filename=-", *as_editor, stdin=manifest)
    assert "digits" in cluster.kubectl("get", "dtjobs", *as_viewer).stdout
    cluster.kubectl("delete", "dtjob", "digits", *as_editor)


def test_the_roles_for_users_can_be_left_out(helm: Helm, cluster: AuditedControlPlane, api: Api) -> None:
    install(helm, api, "rbac.userRoles=false")
    assert not {name for name in objects(cluster, "clusterroles") if name.endswith(("-edit", "-view"))}
