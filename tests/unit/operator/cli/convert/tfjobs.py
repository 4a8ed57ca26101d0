# SPDX-License-Identifier: Apache-2.0
"""TFJobs for the tests: those of tests/tfjobs/, and one that a test changes."""

from copy import deepcopy
from pathlib import Path
from typing import Any

from dtjob.cli.convert.tfjob import Converted, convert, is_tfjob
from dtjob.manifests.stream import read_file

FOLDER = Path(__file__).parents[4] / "tfjobs"
FILES = sorted(FOLDER.iterdir())


def of_file(file: Path) -> list[dict[str, Any]]:
    return [one.content for one in read_file(file) if is_tfjob(one.content)]


def replica(policy: str = "OnFailure", replicas: int = 1, **container: Any) -> dict[str, Any]:
    training = {"name": "tensorflow", "image": "registry.example/a:1", **container}
    return {"replicas": replicas, "restartPolicy": policy, "template": {"spec": {"containers": [training]}}}


def tfjob(roles: dict[str, Any], run_policy: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    policy = {"cleanPodPolicy": "Running", "backoffLimit": 3} if run_policy is None else run_policy
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "mnist"},
        "spec": {"runPolicy": policy, "tfReplicaSpecs": deepcopy(roles), **spec},
    }


def lines(result: Converted, *, warnings: bool = True) -> dict[str, str]:
    """What is said, by path."""
    return {one.path: one.message for one in result.findings if one.warning is warnings}


def converted(roles: dict[str, Any], run_policy: dict[str, Any] | None = None, **spec: Any) -> Converted:
    return convert(tfjob(roles, run_policy, **spec))
