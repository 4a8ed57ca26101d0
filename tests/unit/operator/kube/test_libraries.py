# SPDX-License-Identifier: Apache-2.0
"""Which modules an operator has, and that others can still have the rest."""

import json
import subprocess
import sys

UNUSED = ("kubernetes.client", "kubernetes.dynamic", "oauthlib", "requests", "websocket")


def imported(program: str) -> list[str]:
    """The modules that a process has after running this."""
    command = [sys.executable, "-c", f"{program}; import json, sys; print(json.dumps(sorted(sys.modules)))"]
    found: list[str] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return found


def test_the_operator_does_not_hold_the_synchronous_client() -> None:
    modules = imported("import dtjob.kube.process")
    assert "kubernetes.aio.client" in modules
    assert [name for name in UNUSED if name in modules] == []


def test_an_import_of_the_whole_kubernetes_client_gets_all_of_it() -> None:
    program = "import dtjob.kube.process, kubernetes, kubernetes.aio; kubernetes.client.CoreV1Api; kubernetes.config"
    assert "requests" in imported(program)


def test_a_kubernetes_client_imported_earlier_stays_the_same_module() -> None:
    program = "import kubernetes; before = kubernetes; import dtjob.kube.process; import kubernetes as after"
    assert "kubernetes.client" in imported(f"{program}; assert before is after")
