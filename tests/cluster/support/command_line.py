# SPDX-License-Identifier: Apache-2.0
"""`dtjob` as an editor of a namespace runs it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cluster.support.editor import editor
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def command_line(cluster: ControlPlane, api: Api, namespace: str, directory: Path) -> Run:
    """Runs `dtjob ARGUMENTS…` in a directory, with the rights of an editor of the namespace."""
    kubeconfig = editor(cluster, api, namespace, directory)

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        name, *others = map(str, arguments)
        command = [sys.executable, "-m", "dtjob", name, "--kubeconfig", str(kubeconfig), *others]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, timeout=240)

    return run
