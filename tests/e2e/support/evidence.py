# SPDX-License-Identifier: Apache-2.0
"""What a failing test leaves: what the cluster said and what ran on it, in a folder of its own.

Folders are in $DTJOB_E2E_ARTIFACTS, else in `${XDG_CACHE_HOME:-~/.cache}/dtjob/e2e-failures/`: the newest ones.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from tests.cluster.support.chart import NAMESPACE as OPERATOR_NAMESPACE
from tools.cluster.cluster import Cluster
from tools.programs import cache

KEPT = 20
_PATIENCE = "--request-timeout=20s"


def folder() -> Path:
    """Where the folders are."""
    return Path(os.environ.get("DTJOB_E2E_ARTIFACTS") or cache() / "e2e-failures")


def collect(cluster: Cluster, test: str, words: Iterable[str]) -> Path:
    """Write down the state of the cluster; returns the new folder. Whatever cannot be had is left out.

    Of the `words` those that are names of namespaces are written down, and the operator's own.
    """
    stem = re.sub(r"[^A-Za-z0-9]+", "-", test)[:80].strip("-")
    directory = folder() / f"{stem}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    directory.mkdir(parents=True, exist_ok=True)
    _save(cluster, directory / "nodes.yaml", "get", "nodes", "-o", "yaml")
    _save(cluster, directory / "nodes.txt", "describe", "nodes")
    _save(cluster, directory / "volumes.txt", "get", "persistentvolumes", "-o", "wide")
    _save(cluster, directory / "pods.txt", "get", "pods", "--all-namespaces", "-o", "wide")
    there = set(_names(cluster, "get", "namespaces"))
    for namespace in sorted({OPERATOR_NAMESPACE, *words} & there):
        _namespace(cluster, namespace, directory / namespace)
    programs = directory / "programs"
    programs.mkdir(exist_ok=True)
    cluster.write_logs(programs)
    prune(folder(), KEPT)
    return directory


def prune(top: Path, kept: int) -> None:
    """Remove all but the newest folders."""
    found = sorted((path for path in top.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for path in found[:-kept]:
        shutil.rmtree(path, ignore_errors=True)


def _namespace(cluster: Cluster, namespace: str, directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    inside = ("--namespace", namespace)
    _save(cluster, directory / "events.txt", *inside, "get", "events", "--sort-by=.lastTimestamp")
    kinds = ("pods", "dtjobs", "deployments", "persistentvolumeclaims", "configmaps", "services", "networkpolicies")
    for kind in (*kinds, "leases"):
        _save(cluster, directory / f"{kind}.yaml", *inside, "get", kind, "-o", "yaml")
    _save(cluster, directory / "pods.txt", *inside, "describe", "pods")
    for pod in _names(cluster, *inside, "get", "pods"):
        logs = (*inside, "logs", pod, "--all-containers", "--prefix", "--timestamps")
        _save(cluster, directory / f"{pod}.log", *logs)
        _save(cluster, directory / f"{pod}.previous.log", *logs, "--previous")


def _names(cluster: Cluster, *arguments: str) -> list[str]:
    done = cluster.kubectl(*arguments, "-o", "json", _PATIENCE, check=False)
    return [one["metadata"]["name"] for one in json.loads(done.stdout)["items"]] if done.stdout else []


def _save(cluster: Cluster, file: Path, *arguments: str) -> None:
    """Write what kubectl prints to a file, if anything: most pods have no previous container."""
    said = cluster.kubectl(*arguments, _PATIENCE, check=False).stdout
    if said:
        file.write_text(said)
