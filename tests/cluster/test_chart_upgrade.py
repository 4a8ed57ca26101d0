# SPDX-License-Identifier: Apache-2.0
"""`helm upgrade` and `helm rollback` with jobs in the cluster: other values, other defaults, another definition."""

import shutil
import time
from pathlib import Path

import pytest
import yaml

from tests.cluster.support.chart import (
    CHART,
    RELEASE,
    AuditedControlPlane,
    Helm,
    InstalledOperator,
    install,
    objects,
    says,
)
from tests.cluster.support.jobs import job, uids, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tools.cluster.rest import Api

DIGITS = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")


@pytest.fixture(scope="module")
def cluster(audited_cluster: AuditedControlPlane) -> AuditedControlPlane:
    return audited_cluster


@pytest.fixture(scope="module")
def api(cluster: AuditedControlPlane) -> Api:
    return Api(cluster.kubeconfig)


def test_an_upgrade_brings_a_default_image_and_running_jobs_keep_theirs(
    helm: Helm, api: Api, installed: InstalledOperator, namespace: str, kubelet: Kubelet
) -> None:
    def image_and_team(*names: str) -> set[tuple[str, str | None]]:
        pods = wait_pods(api, namespace, *names).values()
        return {(pod["spec"]["containers"][0]["image"], pod["metadata"]["labels"].get("team")) for pod in pods}

    def upgrade(*values: str) -> None:
        install(helm, api, *values, verb="upgrade")
        assert installed.terminate() == 0
        installed.start()

    install(helm, api)
    installed.start()
    without = job()
    del without["spec"]["image"]
    api.create("dtjobs", namespace, without)
    waiting = api.wait_for("dtjobs", namespace, "digits", says("ImageMissing"))
    assert waiting is not None
    assert (waiting["status"]["phase"], waiting["status"]["ready"]) == ("Pending", "0/3")
    assert "jobs.image" in waiting["status"]["message"]
    upgrade("jobs.image=trainer:1", "jobs.podLabels.team=vision")
    assert image_and_team(*DIGITS) == {("trainer:1", "vision")}
    for pod in DIGITS:
        kubelet.run(pod)
    assert wait_phase(api, namespace, "Running")["status"]["image"] == "trainer:1"
    before = uids(wait_pods(api, namespace, *DIGITS))
    upgrade("jobs.image=trainer:2")
    api.create("dtjobs", namespace, {**without, "metadata": {"name": "later"}})
    later = tuple(name.replace("digits", "later") for name in DIGITS)
    after = wait_pods(api, namespace, *DIGITS, *later)
    assert before.items() <= uids(after).items()
    assert {after[name]["spec"]["containers"][0]["image"] for name in later} == {"trainer:2"}
    kubelet.exit("digits-worker-1-0", 1)
    again = (*DIGITS[:-1], "digits-worker-1-1")
    found = wait_pods(api, namespace, *again, *later)["digits-worker-1-1"]
    assert found["spec"]["containers"][0]["image"] == "trainer:1"


@pytest.mark.usefixtures("installed")
def test_an_upgrade_takes_the_election_away_and_brings_it_back(
    helm: Helm, cluster: AuditedControlPlane, api: Api
) -> None:
    """The strategies of a Deployment exclude each other's fields, and helm applies on the server's side."""
    install(helm, api)
    for enabled, strategy in (("false", "Recreate"), ("true", "RollingUpdate")):
        install(helm, api, f"operator.leaderElection.enabled={enabled}", verb="upgrade")
        (deployment,) = objects(cluster, "deployments", "--all-namespaces").values()
        assert deployment["spec"]["strategy"]["type"] == strategy


@pytest.mark.slow  # half a minute: three releases with the definition
@pytest.mark.usefixtures("installed")
def test_a_rollback_brings_the_earlier_definition_back_and_keeps_the_jobs(
    helm: Helm, api: Api, namespace: str, tmp_path: Path
) -> None:
    newer = tmp_path / "newer"
    shutil.copytree(CHART, newer)
    file = newer / "files" / "crd.yaml"
    definition = yaml.safe_load(file.read_text())
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["fromALaterVersion"] = {"type": "string"}
    file.write_text(yaml.safe_dump(definition))
    install(helm, api)
    install(helm, api, chart=newer, verb="upgrade")
    before = api.create("dtjobs", namespace, job(suspend=True))
    set_until(api, namespace, kept=True)
    helm("rollback", RELEASE, "1")
    api.wait_established()
    set_until(api, namespace, kept=False)
    assert api.get("dtjobs", namespace, "digits")["metadata"]["uid"] == before["metadata"]["uid"]


def set_until(api: Api, namespace: str, *, kept: bool) -> None:
    """Set the field until the API server keeps it, or removes it: it serves a new definition a moment later."""
    for number in range(100):
        patch = {"spec": {"fromALaterVersion": str(number)}}
        found = api.patch("dtjobs", namespace, "digits", patch, fieldValidation="Ignore")
        if ("fromALaterVersion" in found["spec"]) is kept:
            return
        time.sleep(0.1)
    raise AssertionError(found["spec"])
