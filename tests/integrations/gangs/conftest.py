# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests with others' schedulers: the cluster tier's, around a control plane that runs one of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.conftest import (
    audited_cluster,
    helm,
    helm_program,
    installed,
    kubelet,
    operator_of_all,
    operators_of_all,
    shared_operator,
)
from tools import binaries
from tools.cluster.control_plane import ControlPlane
from tools.cluster.program import Program
from tools.cluster.rest import Api
from tools.programs import CONTROL_PLANE

ROOT = Path(__file__).resolve().parents[3]
__all__ = ["audited_cluster", "helm", "helm_program", "installed", "kubelet", "operator_of_all"]
__all__ += ["operators_of_all", "shared_operator"]

Command = Callable[[ControlPlane], list[list[str]]]
"""The command lines of what runs beside a control plane."""


@contextmanager
def control_plane(
    tools: tuple[str, ...], definitions: Callable[[], list[Path]], commands: Command
) -> Iterator[ControlPlane]:
    """A control plane with dtjob's definition and these, and with these programs beside it. Skips where one can be
    neither found nor built. Prints the programs' logs where something fails."""
    try:
        programs, files = binaries.find((*CONTROL_PLANE, *tools)), definitions()
    except binaries.BinariesError as error:
        pytest.skip(f"no schedulers of others: {str(error).splitlines()[0]}")
    with ControlPlane(programs) as cluster:
        for file in (ROOT / "crds", *files):
            cluster.kubectl("apply", "--server-side", "-f", str(file))
        Api(cluster.kubeconfig).wait_established()
        cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        running = [Program(Path(command[0]).name, command, cluster.directory) for command in commands(cluster)]
        try:
            yield cluster
        finally:
            for program in running:
                print(f"--- {program.name}\n{program.last_lines()}")
                program.stop()


@pytest.fixture(scope="module")
def api(cluster: ControlPlane) -> Api:
    return Api(cluster.kubeconfig)
