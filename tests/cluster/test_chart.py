"""The chart, by real helm on a real API server: install, upgrade, uninstall, reinstall; rights that just suffice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from dtjob import manifests
from dtjob.api import Job
from tests.cluster.chart import (
    CHART,
    NAMESPACE,
    RELEASE,
    AuditedControlPlane,
    Helm,
    InstalledOperator,
    find_helm,
    free_port,
    older_chart,
)
from tests.cluster.jobs import GROUP, job, uids, wait_phase, wait_pods
from tests.cluster.kubelet import Kubelet
from tests.cluster.operator_process import OPERATOR_DIRECTORY
from tests.cluster.rest import CRD, Api, ApiError, Object
from tests.tools import binaries

DIGITS = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")
AGAIN = tuple(name.removesuffix("-0") + "-1" for name in DIGITS)
STRANGERS = {"Service": "services", "NetworkPolicy": "networkpolicies", "ConfigMap": "configmaps", "Pod": "pods"}


@pytest.fixture(scope="module")
def helm_program() -> Path:
    program = find_helm()
    if program is None:
        pytest.skip("no helm: it is neither on the PATH nor could it be built (DTJOB_HELM may name it)")
    return program


@pytest.fixture(scope="module")
def cluster(helm_program: Path) -> Iterator[AuditedControlPlane]:
    """A control plane of its own: the other tests' one has its CRD by kubectl, and admission that asks for less."""
    try:
        programs = binaries.find()
    except binaries.BinariesError as error:
        pytest.skip(f"no Kubernetes programs: {str(error).splitlines()[0]}")
    with AuditedControlPlane(programs) as running:
        running.kubectl("create", "namespace", NAMESPACE)
        yield running


@pytest.fixture(scope="module")
def api(cluster: AuditedControlPlane) -> Api:
    return Api(cluster.kubeconfig)


@pytest.fixture
def helm(helm_program: Path, cluster: AuditedControlPlane, tmp_path: Path) -> Iterator[Helm]:
    run = Helm(helm_program, cluster, tmp_path)
    yield run
    run("uninstall", RELEASE, check=False)


@pytest.fixture
def operator(cluster: AuditedControlPlane, api: Api, tmp_path: Path) -> Iterator[InstalledOperator]:
    """The release's operator; the test starts it once the chart is installed."""
    process = InstalledOperator(cluster, api, tmp_path)
    yield process
    if process.running():
        process.terminate()  # gives the lease back, so that the next test's need not wait for it
    if process.log.exists():
        print(process.log.read_text())


def install(helm: Helm, api: Api, *values: str, chart: Path = CHART, verb: str = "install") -> int:
    """Install or upgrade the release; returns the port of its liveness probe."""
    port = free_port()
    settings = (f"operator.livenessPort={port}", "leaderElection.leaseSeconds=6", *values)
    helm(verb, RELEASE, str(chart), "--set", ",".join(settings))
    api.wait_established()
    return port


def objects(cluster: AuditedControlPlane, kinds: str, *options: str) -> dict[str, Object]:
    """The objects of the release, by `Kind/name`."""
    selector = f"app.kubernetes.io/instance={RELEASE}"
    found = cluster.kubectl("get", kinds, f"--selector={selector}", "--output=json", *options)
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in json.loads(found.stdout)["items"]}


def granted(cluster: AuditedControlPlane) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all that the release's roles allow."""
    roles = objects(cluster, "clusterroles,roles", "--all-namespaces")
    return {
        (group, resource, verb)
        for role in roles.values()
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def stranger(kind: str, name: str, namespace: str) -> Object:
    """An object of somebody else under a name that a job wants."""
    version = "networking.k8s.io/v1" if kind == "NetworkPolicy" else "v1"
    spec: dict[str, Object] = {
        "Service": {"spec": {"ports": [{"port": 80}]}},
        "NetworkPolicy": {"spec": {"podSelector": {}}},
        "ConfigMap": {},
        "Pod": {"spec": {"containers": [{"name": "a", "image": "b"}]}},
    }
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **spec[kind]}


def says(words: str) -> Callable[[Object | None], bool]:
    """A condition for `Api.wait_for`: the status has these words somewhere."""
    return lambda found: words in json.dumps((found or {}).get("status"))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("replicas=two", "/replicas"),
        ("replicas=0", "/replicas"),
        ("replicas=2,leaderElection.enabled=false", "/replicas"),
        ("replica=2", "replica"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("serviceAccount.create=false", "/serviceAccount/name"),
        ("resources.limits.memory=lots", "/resources/limits/memory"),
        ("watchNamespaces={Team_A}", "/watchNamespaces/0"),
        ("operator.livenessPort=80", "/operator/livenessPort"),
    ],
)
def test_a_wrong_value_is_refused_by_name(helm_program: Path, value: str, said: str) -> None:
    done = subprocess.run(
        [helm_program, "template", RELEASE, str(CHART), "--set", value], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert said in done.stderr


def test_what_depends_on_the_replicas(helm_program: Path) -> None:
    for replicas in (1, 2):
        command = [helm_program, "template", RELEASE, str(CHART), "--set", f"replicas={replicas}"]
        rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        made = {one["kind"]: one for one in yaml.safe_load_all(rendered) if one}
        assert ("PodDisruptionBudget" in made) == (replicas > 1)
        pod = made["Deployment"]["spec"]["template"]
        assert ("affinity" in pod["spec"]) == (replicas > 1)
        assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "dtjob"
        assert made["Deployment"]["spec"]["replicas"] == replicas


def test_install_work_upgrade_uninstall_reinstall(
    helm: Helm, cluster: AuditedControlPlane, api: Api, operator: InstalledOperator, namespace: str, kubelet: Kubelet
) -> None:
    port = install(helm, api)
    operator.start()
    # Names that strangers have, and a job's whole life: its group restarts, so that running pods are taken away.
    api.create("dtjobs", namespace, job(program=False))
    wait_pods(api, namespace, *DIGITS)
    for kind, resource in STRANGERS.items():
        wanted = job(f"taken-{kind.lower()}", "Default", program=False)
        stored = Job.model_validate({**wanted, "metadata": {**wanted["metadata"], "namespace": namespace}})
        name = {"ConfigMap": manifests.config_map_name(stored), "Pod": f"{wanted['metadata']['name']}-chief-0-0"}
        api.create(resource, namespace, stranger(kind, name.get(kind, wanted["metadata"]["name"]), namespace))
        api.create("dtjobs", namespace, wanted)
        api.wait_for("dtjobs", namespace, wanted["metadata"]["name"], says("exists and is not this job's"))
    for pod in DIGITS:
        kubelet.run(pod)
    wait_phase(api, namespace, "Running")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        f"http://127.0.0.1:{port}{operator.container()['livenessProbe']['httpGet']['path']}", timeout=10
    ) as answer:
        assert answer.status == 200
    kubelet.exit("digits-worker-0-0", 1)
    for pod in AGAIN:
        kubelet.run(pod)
    wait_phase(api, namespace, "Running")
    before = uids(wait_pods(api, namespace, *AGAIN, "taken-pod-chief-0-0"))

    # An upgrade under the running job: the old pod is told to end, the new one takes over, the job never notices.
    install(helm, api, "replicas=2", verb="upgrade")
    assert "PodDisruptionBudget/dtjob" in objects(cluster, "pdb", f"--namespace={NAMESPACE}")
    assert operator.terminate() == 0
    operator.start()
    api.create("dtjobs", namespace, job("second", "Default"))
    after = uids(wait_pods(api, namespace, *before, "second-chief-0-0"))
    assert before.items() < after.items()

    helm("uninstall", RELEASE)
    operator.kill()
    assert not objects(cluster, "all,clusterroles,clusterrolebindings,roles,rolebindings", "--all-namespaces")
    assert api.get("customresourcedefinitions", None, CRD)["metadata"].get("deletionTimestamp") is None
    assert len(api.list("dtjobs", namespace)) == 2 + len(STRANGERS)
    assert uids(wait_pods(api, namespace, *after)) == after
    kubelet.succeed("digits-chief-0-1")

    install(helm, api)
    operator.start()
    wait_phase(api, namespace, "Succeeded")

    allowed = granted(cluster)
    assert operator.terminate() == 0
    calls = set(cluster.calls())
    assert not [call for call in calls if call[3] == 403]
    used = {call[:3] for call in calls}
    # The one right that is no call: admission asks for it where an owner reference blocks (see the next test).
    assert allowed - used == {("training.dtjob.dev", "distributedtrainingjobs/finalizers", "update")}
    assert used <= allowed


def test_without_the_finalizers_right_strict_admission_refuses_children(
    helm: Helm, cluster: AuditedControlPlane, api: Api, operator: InstalledOperator, namespace: str
) -> None:
    install(helm, api)
    role = f"clusterrole/{NAMESPACE}-{RELEASE}"
    rules = json.loads(cluster.kubectl("get", role, "--output=json").stdout)["rules"]
    less = [rule for rule in rules if rule["resources"] != ["distributedtrainingjobs/finalizers"]]
    assert len(less) == len(rules) - 1
    cluster.kubectl("patch", role, "--type=merge", f"--patch={json.dumps({'rules': less})}")
    operator.start()
    api.create("dtjobs", namespace, job())
    api.wait_for("dtjobs", namespace, "digits", says("blockOwnerDeletion"))


def test_upgrade_with_a_job_that_the_new_rules_refuse(
    helm: Helm,
    cluster: AuditedControlPlane,
    api: Api,
    operator: InstalledOperator,
    namespace: str,
    tmp_path: Path,
) -> None:
    bad = job("old")
    bad["spec"]["replicas"] |= {"ps": {"count": 1}, "worker": {"count": -1}}
    api.delete("customresourcedefinitions", None, CRD)
    api.wait_for("customresourcedefinitions", None, CRD, lambda crd: crd is None)
    install(helm, api, chart=older_chart(tmp_path))
    path = f"apis/{GROUP}/v1alpha1/namespaces/{namespace}/distributedtrainingjobs"
    until_answers(lambda: api.call("POST", path, bad), 200)
    install(helm, api, verb="upgrade")
    api.wait_for("customresourcedefinitions", None, CRD, lambda crd: crd and "maxRestarts" in json.dumps(crd))
    refused = job("new")
    refused["spec"] = bad["spec"]
    until_answers(lambda: api.create("dtjobs", namespace, refused, dryRun="All"), 422)
    operator.start()
    old = api.wait_for("dtjobs", namespace, "old", lambda found: found and found.get("status", {}).get("reason"))
    assert old is not None
    assert old["status"]["reason"] == "InvalidSpec"
    api.create("dtjobs", namespace, job())
    wait_pods(api, namespace, *DIGITS)


def until_answers(call: Callable[[], object], status: int) -> None:
    """Make the call until it is answered with this HTTP status: the API server takes in a CRD a moment later."""
    limit = time.monotonic() + 60
    while True:
        try:
            call()
            found = 200
        except ApiError as error:
            found = error.status
        if found == status:
            return
        assert time.monotonic() < limit, f"answered with {found} for 60 s, not with {status}"
        time.sleep(0.1)


def test_only_the_named_namespaces(
    helm: Helm, cluster: AuditedControlPlane, api: Api, operator: InstalledOperator, namespace: str, kubelet: Kubelet
) -> None:
    before = len([call for call in cluster.calls() if call[3] == 403])
    install(helm, api, f"watchNamespaces={{{namespace}}}")
    assert not objects(cluster, "clusterroles,clusterrolebindings")
    operator.start()
    api.create("dtjobs", namespace, job())
    wait_pods(api, namespace, *DIGITS)
    for pod in DIGITS:
        kubelet.run(pod)
    wait_phase(api, namespace, "Running")
    kubelet.succeed("digits-chief-0-0")
    wait_phase(api, namespace, "Succeeded")
    assert operator.terminate() == 0
    assert len([call for call in cluster.calls() if call[3] == 403]) == before


def test_helm_test_runs_the_check(helm: Helm, api: Api, operator: InstalledOperator, tmp_path: Path) -> None:
    install(helm, api)
    with Kubelet(api, NAMESPACE) as kubelet:
        testing = subprocess.Popen(
            helm.command("test", RELEASE), env=helm.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        pod = kubelet.run(f"{RELEASE}-test")
        (container,) = pod["spec"]["containers"]
        checked = subprocess.run(
            [sys.executable, "-m", "dtjob", *container["args"], f"--kubeconfig={operator.kubeconfig()}"],
            env={"PYTHONPATH": str(OPERATOR_DIRECTORY)},
            capture_output=True,
            text=True,
        )
        kubelet.exit(f"{RELEASE}-test", checked.returncode)
        said, _ = testing.communicate(timeout=60)
    assert checked.stdout.startswith("the cluster serves DistributedTrainingJobs")
    assert testing.returncode == 0, said
