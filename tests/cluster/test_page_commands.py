# SPDX-License-Identifier: Apache-2.0
"""The commands of kubectl and dtjob on the pages work, against a real API server. `test_page_helm.py` runs helm's."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dtjob.cli.main import app
from tests.cluster.conftest import Kubectl
from tests.cluster.support.editor import editor
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.node_streams import NodeStreams
from tests.cluster.support.operator_process import OperatorProcess
from tests.unit.page_commands import PAGES
from tests.unit.page_runs import commands_of, everywhere, filled, text, write_files
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

JOBS = ("digits", "classifier", "spot", "images")
WITH_DATA_WORKERS = "images"
CHANGING = ("restart", "scale", "suspend", "resume")
"""Commands of dtjob that change a job, in the order in which they are run, each for STEERED."""
STEERED = "spot"
AFTER_THE_END = ("wait", "top")
"""Commands of dtjob and kubectl that wait for the end of the job."""
OF_FILES, TRIED = ("apply", "create"), ("scale", "autoscale", "patch", "delete", "drain")
"""Verbs of kubectl that the API server only tries: those that need files of the page, and those that need jobs."""
COPY = "look"
"""A pod that the commands of a page make and delete. Both are done."""
WITH_HELM = "build/dtjob.yaml"
"""`test_page_helm.py` makes this file and applies it."""


@pytest.fixture
def running(api: Api, namespace: str, shared_operator: OperatorProcess, node: NodeStreams) -> None:
    """The jobs that the pages name."""
    for name in ("model.keras", "ckpt-7.index", "best/ckpt-6.index", "events/train/events.out", "logs/attempt-0.log"):
        (node.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (node.directory / name).write_text(name)
    node.logs.update({f"{name}-{task}-0": ["hello"] for name in JOBS for task in ("chief-0", "worker-0", "worker-1")})
    claim = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "data"}}}}
    for name in JOBS:
        made = job(name, checkpoint=claim, elasticPolicy={"minReplicas": 2, "maxReplicas": 8})
        if name == WITH_DATA_WORKERS:
            made["spec"]["replicaSpecs"]["data"] = {}
        api.create("dtjobs", namespace, made)
    for name in JOBS:
        wait_phase(api, namespace, "Running", name)


def test_the_commands_of_the_pages_for_files_work(kubectl: Kubectl, tmp_path: Path) -> None:
    wrong, verbs = [], set()
    for number, page in enumerate(PAGES):
        commands = [words[1:] for words in commands_of(page) if words[0] == "kubectl" and words[1] in OF_FILES]
        if commands:
            (tmp_path / str(number)).mkdir()
            write_files(page, tmp_path / str(number))
        for words in commands:
            if WITH_HELM not in words:
                verbs.add(words[0])
                wrong += _of_kubectl(words, kubectl, tmp_path / str(number))
    assert wrong == []
    assert verbs == set(OF_FILES)


def test_the_commands_of_the_pages_for_jobs_work(
    cluster: ControlPlane,
    api: Api,
    namespace: str,
    kubectl: Kubectl,
    node_kubelet: Kubelet,
    running: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    user, administrator = editor(cluster, api, namespace, tmp_path), tmp_path / "administrator"
    administrator.write_text(cluster.kubeconfig.read_text())
    commands = list(everywhere("cluster").values())
    ours = [words[1:] for words in commands if words[0] == "dtjob"]
    theirs = [
        [node_kubelet.node if word == "NODE" else word for word in words[1:]]
        for words in commands
        if words[0] == "kubectl" and words[1] not in OF_FILES
    ]
    last = [words for words in (*ours, *theirs) if words[0] in AFTER_THE_END]
    changing = sorted((words for words in ours if words[0] in CHANGING), key=lambda words: CHANGING.index(words[0]))
    assert list(dict.fromkeys(words[0] for words in changing)) == list(CHANGING)
    assert {words[0] for words in theirs} >= set(TRIED)

    wrong = [said for words in theirs if words not in last for said in _of_kubectl(words, kubectl, tmp_path)]
    for words in ours:
        if words not in last and words not in changing:
            wrong += _of_dtjob(filled(words), administrator if words == ["check"] else user)
    for words in changing:
        wrong += _of_dtjob(filled([word.replace("JOB", STEERED) for word in words]), user)
    node_kubelet.exit("digits-chief-0-0", 0)
    wait_phase(api, namespace, "Succeeded", "digits")
    for words in last:
        wrong += _of_dtjob(filled(words), user) if words in ours else _of_kubectl(words, kubectl, tmp_path)
    assert wrong == []


def _of_kubectl(words: list[str], kubectl: Kubectl, folder: Path) -> list[str]:
    """Why this command fails; empty where it works. It ends at once: `--watch` is left out."""
    kept = [word for word in filled(words) if word != "--watch"]
    made = [
        re.sub(r"(?<==)(\w+\.(?:py|npz|crt|json))$", lambda found: str((folder / found[1]).resolve()), word)
        for word in kept
    ]
    files = [str((folder / word).resolve()) if word[0] != "-" and (folder / word).exists() else word for word in made]
    trial = ["--dry-run=server"] if words[0] in (*OF_FILES, *TRIED) and words[-1] != COPY else []
    done = kubectl(*files, *trial, check=False)
    return [] if done.returncode == 0 else [f"kubectl {text(words)}: {done.stderr}"]


def _of_dtjob(words: list[str], kubeconfig: Path) -> list[str]:
    """Why this command fails with the rights of this user; empty where it works."""
    done = CliRunner().invoke(app(), [*words, "--kubeconfig", str(kubeconfig)])
    if done.exit_code == 0 and "Traceback" not in done.stderr:
        return []
    return [f"dtjob {text(words)}: exit code {done.exit_code}: {done.output[-500:]} {done.exception!r}"]
