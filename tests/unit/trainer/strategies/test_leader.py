# SPDX-License-Identifier: Apache-2.0
"""Waiting for the task at which a group's TensorFlow processes meet."""

import socket
import threading
import time

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.strategies.leader import wait_for_leader


def task(address: str, role: str = "worker", index: int = 0, chief: bool = True) -> Task:
    cluster = {"chief": (address,), "worker": ("w0:1", "w1:1")} if chief else {"worker": (address, "w1:1")}
    return Task("job", "ns", "uid", role, index, strategy="MultiWorkerMirrored", cluster=cluster)


@pytest.mark.parametrize("chief", [True, False])
def test_the_wait_ends_when_the_leader_listens(chief: bool) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
        found: list[bool] = []
        waiting = threading.Thread(
            target=lambda: found.append(wait_for_leader(task(address, index=1, chief=chief), 60))
        )
        waiting.start()
        assert not wait_for_leader(task(address, index=1, chief=chief), 0.1)
        assert found == []
        server.listen()
        waiting.join(60)
    assert found == [True]


def test_the_wait_for_the_leader_ends_after_its_time_limit() -> None:
    began = time.monotonic()
    assert not wait_for_leader(task("no-such-host.invalid:1"), 0.2)
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("leader", [task("nobody:1", "chief"), task("nobody:1", "worker", 0, chief=False)])
def test_the_leader_does_not_wait(leader: Task) -> None:
    assert wait_for_leader(leader, 60)
