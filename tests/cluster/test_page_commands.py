# SPDX-License-Identifier: Apache-2.0
"""The commands of kubectl on the pages work, against a real API server."""

from __future__ import annotations

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.unit.page_commands import PAGES, ROOT, of_blocks, of_text
from tools.cluster.rest import Api

LOOKING = ("get", "describe", "explain", "scale", "autoscale", "patch", "apply")
"""Commands that end at once. Files are applied for a trial only, and `--watch` is left out."""


def _commands() -> set[tuple[str, ...]]:
    """Each command on the pages that concerns jobs or files of this repository."""
    found = set()
    for page in PAGES:
        for program, *words in [*of_blocks(page), *of_text(page)]:
            applies = words[0] == "apply" and words[1:2] == ["-f"] and (ROOT / words[-1]).exists()
            of_jobs = any(word.startswith(("dtj", "dtjob")) for word in words) and words[0] != "apply"
            whole = len(words) > 2 or words[-1] == "dtjobs"
            if program == "kubectl" and words[0] in LOOKING and whole and (applies or of_jobs):
                found.add(tuple(word for word in words if word not in ("--watch", "NAME")))
    return found


def test_the_kubectl_commands_of_the_pages_work(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, auto_kubelet: Kubelet
) -> None:
    wanted = sorted(_commands())
    assert {words[0] for words in wanted} >= {"get", "describe", "explain", "scale", "patch", "apply"}
    wrong = [problem for words in wanted if words[0] == "apply" and (problem := _problem(words, kubectl))]
    for name in ("digits", "spot"):
        api.create("dtjobs", namespace, job(name, elasticPolicy={"minReplicas": 2, "maxReplicas": 8}))
        wait_phase(api, namespace, "Running", name)
    wrong += [problem for words in wanted if words[0] != "apply" and (problem := _problem(words, kubectl))]
    assert wrong == []


def _problem(words: tuple[str, ...], kubectl: Kubectl) -> str:
    """Why this command fails; empty where it works."""
    trial = ["--dry-run=server"] if words[0] in ("apply", "scale", "autoscale", "patch") else []
    files = [str(ROOT / word) if (ROOT / word).exists() and "/" in word else word for word in words]
    done = kubectl(*files, *trial, check=False)
    return "" if done.returncode == 0 else f"{' '.join(words)}: {done.stderr}"
