# SPDX-License-Identifier: Apache-2.0
"""The chart, by real helm on a real API server: install, upgrade, uninstall, reinstall; rights that just suffice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dtjob import __version__
from dtjob.api.job import Job
from dtjob.local.processes.addresses import free_ports
from dtjob.objects import shared
from tests.cluster.support.chart import (
    CHART,
    CLAIM,
    NAMESPACE,
    RELEASE,
    STRANGERS,
    USER,
    AuditedControlPlane,
    Helm,
    InstalledOperator,
    Ports,
    granted,
    install,
    meddle,
    objects,
    says,
    stranger,
    wait_until,
)
from tests.cluster.support.jobs import job, uids, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet, now
from tests.cluster.support.operator_process import OPERATOR_DIRECTORY
from tools.cluster.rest import CRD, Api, Object

DIGITS = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")
AGAIN = tuple(name.removesuffix("-0") + "-1" for name in DIGITS)
SERVICE_MONITORS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors", "singular": "servicemonitor"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""As much of the Prometheus operator's definition as makes the API server serve the kind; it checks no fields."""


@pytest.fixture(scope="module")
def cluster(audited_cluster: AuditedControlPlane) -> AuditedControlPlane:
    """A control plane of its own: the other tests' one has its CRD by kubectl, and admission that asks for less."""
    return audited_cluster


@pytest.fixture(scope="module")
def api(cluster: AuditedControlPlane) -> Api:
    return Api(cluster.kubeconfig)


def test_a_service_monitor_needs_its_definition(helm: Helm, cluster: AuditedControlPlane, api: Api) -> None:
    settings = ("--set", "metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.labels.release=prometheus")
    refused = helm("install", RELEASE, str(CHART), *settings, check=False)
    assert refused.returncode == 1
    assert "the cluster has no ServiceMonitors. Install the Prometheus operator" in refused.stderr
    cluster.kubectl("create", "--filename=-", stdin=json.dumps(SERVICE_MONITORS))
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{SERVICE_MONITORS['metadata']['name']}")
    try:
        helm("install", RELEASE, str(CHART), *settings)
        made = objects(cluster, "services,servicemonitors", f"--namespace={NAMESPACE}")
        service, monitor = made["Service/dtjob-metrics"], made["ServiceMonitor/dtjob"]
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert [one["port"] for one in monitor["spec"]["endpoints"]] == [service["spec"]["ports"][0]["name"]]
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
    finally:
        cluster.kubectl("delete", "crd", SERVICE_MONITORS["metadata"]["name"])


def test_the_notes_tell_the_next_commands(helm: Helm, api: Api) -> None:
    install(helm, api)
    notes = helm("get", "notes", RELEASE).stdout
    for command in (
        f"kubectl --namespace {NAMESPACE} rollout status deployment/{RELEASE}",
        "kubectl apply -f job.yaml",
        "kubectl get dtjobs --watch",
    ):
        assert f"  {command}\n" in notes
    assert "None is published under this name" in notes
    install(helm, api, "image.tag=dev,operator.watchNamespaces={default}", verb="upgrade")
    notes = helm("get", "notes", RELEASE).stdout
    assert "dtjob-operator:dev, which the nodes must have" in notes
    assert "published" not in notes
    assert "  kubectl apply --namespace default -f job.yaml\n" in notes


def test_without_the_finalizers_right_strict_admission_refuses_children(
    helm: Helm, cluster: AuditedControlPlane, api: Api, installed: InstalledOperator, namespace: str
) -> None:
    install(helm, api)
    role = f"clusterrole/{NAMESPACE}-{RELEASE}"
    rules = json.loads(cluster.kubectl("get", role, "--output=json").stdout)["rules"]
    less = [rule for rule in rules if rule["resources"] != ["distributedtrainingjobs/finalizers"]]
    assert len(less) == len(rules) - 1
    cluster.kubectl("patch", role, "--type=merge", f"--patch={json.dumps({'rules': less})}")
    finalizers = ("update", "distributedtrainingjobs.training.dtjob.dev", "--subresource=finalizers")
    wait_until(
        lambda: cluster.kubectl("auth", "can-i", *finalizers, f"--as={USER}", check=False).stdout.strip() == "no",
        "the right is gone",
    )
    installed.start()
    api.create("dtjobs", namespace, job())
    api.wait_for("dtjobs", namespace, "digits", says("blockOwnerDeletion"))


def succeed_and_be_deleted(cluster: AuditedControlPlane, api: Api, namespace: str) -> None:
    """The job has succeeded, and the operator deletes it."""
    wait_phase(api, namespace, "Succeeded")
    at_once = json.dumps({"spec": {"ttlSecondsAfterFinished": 0}})
    cluster.kubectl("patch", "dtjob", "digits", "--type=merge", f"--patch={at_once}", f"--namespace={namespace}")
    api.wait_for("dtjobs", namespace, "digits", lambda found: found is None)


def look_at_samples(samples: dict[str, float], namespace: str) -> None:
    """The operator's metrics say what has happened to the jobs of the test below."""
    assert samples["dtjob_leader"] == 1
    assert samples['dtjob_jobs{phase="Pending",strategy="Default"}'] == len(STRANGERS)
    assert samples['dtjob_restarts_total{cause="Error"}'] == 1
    assert samples[f'dtjob_job_tasks{{job_name="digits",job_namespace="{namespace}"}}'] == 3
    assert samples['dtjob_api_requests_total{code="201",method="POST",resource="pods"}'] > len(DIGITS)
    assert samples["dtjob_last_resync_timestamp_seconds"] > 0


def warning_about(pod: str, namespace: str, uid_of: dict[str, str]) -> Object:
    """What a kubelet tells of a pod whose ConfigMap is not there."""
    about = {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": namespace, "uid": uid_of[pod]}
    said = {"type": "Warning", "reason": "FailedMount", "message": "no such ConfigMap", "lastTimestamp": now()}
    return {"metadata": {"name": f"{pod}.1"}, "involvedObject": about, "source": {"component": "kubelet"}, **said}


def test_install_work_upgrade_uninstall_reinstall(
    helm: Helm, cluster: AuditedControlPlane, api: Api, installed: InstalledOperator, namespace: str, kubelet: Kubelet
) -> None:
    cluster.forget_calls()
    ports = install(helm, api)
    installed.start()
    # Names that strangers have, and a job's whole life: its group restarts, so that running pods are taken away.
    api.create("dtjobs", namespace, job(program=False))
    wait_pods(api, namespace, *DIGITS)
    for kind, resource in STRANGERS.items():
        checkpoint = {"storage": {"volumeClaimTemplate": CLAIM}}
        wanted = job(f"taken-{kind.lower()}", "Default", program=False, checkpoint=checkpoint)
        stored = Job.model_validate({**wanted, "metadata": {**wanted["metadata"], "namespace": namespace}})
        name = {
            "ConfigMap": shared.config_map_name(stored),
            "PersistentVolumeClaim": shared.claim_name(stored),
            "Pod": f"{wanted['metadata']['name']}-chief-0-0",
        }
        api.create(resource, namespace, stranger(kind, name.get(kind, wanted["metadata"]["name"]), namespace))
        api.create("dtjobs", namespace, wanted)
        api.wait_for("dtjobs", namespace, wanted["metadata"]["name"], says("exists and is not this job's"))
    for pod in DIGITS:
        kubelet.run(pod)
    wait_phase(api, namespace, "Running")
    ports.get(ports.liveness, installed.container()["livenessProbe"]["httpGet"]["path"])
    kubelet.exit("digits-worker-0-0", 1)
    for pod in AGAIN:
        kubelet.run(pod)
    wait_phase(api, namespace, "Running")
    look_at_samples(ports.samples(), namespace)
    meddle(api, namespace)
    before = uids(wait_pods(api, namespace, *AGAIN, "taken-pod-chief-0-0"))

    # An upgrade under the running job: the old pod is told to end, the new one takes over, the job never notices.
    install(helm, api, "operator.replicas=2", verb="upgrade")
    assert "PodDisruptionBudget/dtjob" in objects(cluster, "pdb", f"--namespace={NAMESPACE}")
    assert installed.terminate() == 0
    installed.start()
    api.create("dtjobs", namespace, job("second", "Default"))
    after = uids(wait_pods(api, namespace, *before, "second-chief-0-0"))
    assert before.items() < after.items()
    kubelet.wait("second-chief-0-0", "ContainerCreating", "")
    api.create("events", namespace, warning_about("second-chief-0-0", namespace, after))

    assert installed.terminate() == 0  # before its rights go, as a call without them is looked for below
    helm("uninstall", RELEASE)
    assert not objects(cluster, "all,clusterroles,clusterrolebindings,roles,rolebindings", "--all-namespaces")
    assert api.get("customresourcedefinitions", None, CRD)["metadata"].get("deletionTimestamp") is None
    assert len(api.list("dtjobs", namespace)) == 2 + len(STRANGERS)
    assert uids(wait_pods(api, namespace, *after)) == after
    kubelet.succeed("digits-chief-0-1")

    install(helm, api)
    installed.start()
    succeed_and_be_deleted(cluster, api, namespace)
    api.wait_for("dtjobs", namespace, "second", says("FailedMount: no such ConfigMap"))

    # Those to PodGroups: tests/integrations/gangs/test_chart.py, as all others may be used without them.
    allowed = {right for right in granted(cluster) if right[1] != "podgroups"}
    assert installed.terminate() == 0
    calls = set(cluster.calls())
    assert not [call for call in calls if not call[3]]
    used = {call[:3] for call in calls}
    # The one right that is no call: admission asks for it where an owner reference blocks (see the test before).
    assert allowed == used | {("training.dtjob.dev", "distributedtrainingjobs/finalizers", "update")}


def test_an_operator_that_is_installed_again_leads_at_once(helm: Helm, api: Api, installed: InstalledOperator) -> None:
    """helm takes the rights away together with the Deployment, and so before its pod is told to end."""
    install(helm, api, "operator.leaderElection.leaseSeconds=300")
    installed.start()
    installed.wait_log("leading as")
    helm("uninstall", RELEASE)
    assert api.list("leases", NAMESPACE) == []
    assert installed.terminate() == 0
    assert f"lease {NAMESPACE}/{RELEASE} was not released" in installed.log.read_text()
    assert api.list("leases", NAMESPACE) == []
    install(helm, api)
    installed.start()
    installed.wait_log("leading as")


@pytest.mark.slow  # test_leader_election.py has two operators in every run
def test_only_one_of_two_replicas_leads_and_the_other_takes_over(
    helm: Helm, cluster: AuditedControlPlane, api: Api, installed: InstalledOperator, namespace: str, tmp_path: Path
) -> None:
    ports = install(helm, api, "operator.replicas=2")
    assert "PodDisruptionBudget/dtjob" in objects(cluster, "pdb", f"--namespace={NAMESPACE}")
    installed.start()
    installed.wait_log("leading as")
    (tmp_path / "standby").mkdir()
    elsewhere = Ports(*free_ports(2))
    standby = InstalledOperator(
        cluster, api, tmp_path / "standby", (f"--liveness=:{elsewhere.liveness}", f"--metrics=:{elsewhere.metrics}")
    )
    standby.start()
    try:
        standby.wait_log("is held by")
        assert (ports.samples()["dtjob_leader"], elsewhere.samples()["dtjob_leader"]) == (1, 0)
        assert elsewhere.get(elsewhere.liveness, "/healthz") == "ok\n"
        installed.kill()
        standby.wait_log("leading as")
        api.create("dtjobs", namespace, job())
        wait_pods(api, namespace, *DIGITS)
        assert elsewhere.samples()["dtjob_leader"] == 1
    finally:
        assert standby.terminate() == 0


def test_an_operator_with_watch_namespaces_needs_no_cluster_wide_rights(
    helm: Helm, cluster: AuditedControlPlane, api: Api, installed: InstalledOperator, namespace: str, kubelet: Kubelet
) -> None:
    cluster.forget_calls()
    install(helm, api, f"operator.watchNamespaces={{{namespace}}}")
    of_users = {f"ClusterRole/{NAMESPACE}-{RELEASE}-{role}" for role in ("edit", "view")}
    assert set(objects(cluster, "clusterroles,clusterrolebindings")) == of_users
    installed.start()
    api.create("dtjobs", namespace, job())
    wait_pods(api, namespace, *DIGITS)
    for pod in DIGITS:
        kubelet.run(pod)
    wait_phase(api, namespace, "Running")
    kubelet.succeed("digits-chief-0-0")
    wait_phase(api, namespace, "Succeeded")
    assert installed.terminate() == 0
    assert [call for call in cluster.calls() if not call[3]] == []
    assert {caller.split(" ")[0] for caller in cluster.callers()} == {f"dtjob/{__version__}"}


def test_a_deleted_namespace_is_no_harm_to_the_others(
    helm: Helm, cluster: AuditedControlPlane, api: Api, namespace: str, tmp_path: Path
) -> None:
    """The operator's role goes with the namespace: every call there is forbidden then."""

    def watches() -> int:
        return sum(call[1:] == ("distributedtrainingjobs", "watch", True) for call in cluster.calls())

    def create(name: str, where: str) -> None:
        pods = {pod.replace("digits", name) for pod in DIGITS}
        api.create("dtjobs", where, job(name=name))
        api.wait("pods", where, lambda found: pods <= found.keys())

    doomed = api.create("namespaces", None, {"metadata": {"generateName": "doomed-"}})["metadata"]["name"]
    install(helm, api, f"operator.watchNamespaces={{{namespace},{doomed}}}")
    operator = InstalledOperator(cluster, api, tmp_path, ("--resync-seconds=0.5",))
    operator.start()
    try:
        create("first", doomed)
        cluster.kubectl("delete", "namespace", doomed)
        operator.wait_log(f"namespace {doomed} is left alone")
        create("second", namespace)
        assert operator.terminate() == 0  # gives the lease back
        operator.start()
        create("third", namespace)
        before = watches()
        api.create("namespaces", None, {"metadata": {"name": doomed}})
        install(helm, api, f"operator.watchNamespaces={{{namespace},{doomed}}}", verb="upgrade")
        operator.wait_log(f"namespace {doomed} answers again")
        wait_until(lambda: watches() > before, "the namespace is watched again")
        create("fourth", doomed)
        assert operator.terminate() == 0
    finally:
        if operator.running():
            operator.kill()
        cluster.kubectl("delete", "namespace", doomed, "--ignore-not-found", "--wait=false")


def test_helm_test_lists_jobs(helm: Helm, api: Api, installed: InstalledOperator, tmp_path: Path) -> None:
    install(helm, api)
    with Kubelet(api, NAMESPACE) as kubelet:
        testing = subprocess.Popen(
            helm.command("test", RELEASE), env=helm.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        pod = kubelet.run(f"{RELEASE}-test")
        (container,) = pod["spec"]["containers"]
        checked = subprocess.run(
            [sys.executable, "-m", "dtjob", *container["args"], f"--kubeconfig={installed.kubeconfig()}"],
            env={"PYTHONPATH": str(OPERATOR_DIRECTORY)},
            capture_output=True,
            text=True,
        )
        kubelet.exit(f"{RELEASE}-test", checked.returncode)
        said, _ = testing.communicate(timeout=120)
    assert checked.stdout.startswith("NAMESPACE") or checked.stderr == "no jobs in any namespace\n"
    assert testing.returncode == 0, said
