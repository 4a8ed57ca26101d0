# SPDX-License-Identifier: Apache-2.0
"""All tests by several processes at once, as `make test` has it (`pytest -n 4`, with pytest-xdist).

Most tests wait for longer than they compute, so two cores serve four processes. A machine has one set of nodes, so one
process runs all tests on nodes. Files stay whole, as their tests share what a module makes. A control plane costs
processor time even while nobody asks it, so only two processes have one and run the tests of the cluster tier. Each
process chooses from ports of its own.
"""

import os
from collections import Counter
from typing import Any
from zlib import crc32

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.own_ports import choose_from_own_ports

ALONE = "tests/e2e/"
"""The folder of which no two tests run at once."""
CLUSTER, CONTROL_PLANES = "tests/cluster/", 2
LONGEST = (ALONE, CLUSTER, "tests/trainer/")
"""What takes longest begins."""


class Scheduling(LoadScopeScheduling):
    """Hands out a file at a time, all of ALONE as if it were one file, and CLUSTER as two."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        if file.startswith(ALONE):
            return ALONE
        return f"{CLUSTER}{crc32(file.encode()) % CONTROL_PLANES}" if file.startswith(CLUSTER) else file


class SideBySide:
    """The plugin. `left_out` is where each process counts what it leaves out."""

    def __init__(self, left_out: pytest.StashKey[Counter[str]]) -> None:
        self._left_out = left_out

    @pytest.hookimpl
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Scheduling:
        config.option.loadscopereorder = False  # begin with what was collected first
        return Scheduling(config, log)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Begin with what takes longest."""
        if hasattr(config, "workerinput"):
            items.sort(key=lambda item: [not item.nodeid.startswith(folder) for folder in LONGEST])

    @pytest.hookimpl
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        choose_from_own_ports(os.environ)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the process that started this one what was left out here: only who collects sees that."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = dict(session.config.stash[self._left_out])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: WorkerController) -> None:
        """Every process has collected, and left out, the same; one that crashed has told nothing."""
        told = getattr(node, "workeroutput", {})
        if "left_out" in told:
            node.config.stash[self._left_out] = Counter(told["left_out"])
