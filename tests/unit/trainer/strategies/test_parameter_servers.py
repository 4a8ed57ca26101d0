# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.parameter_servers: which parameter servers there are, and what they do beside each other."""

import threading

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.strategies.parameter_servers import devices_of, side_by_side

CLUSTER = {"chief": ("a:1",), "worker": ("b:1",), "ps": ("c:1", "d:1")}


def test_each_ps_has_a_device_under_parameter_server_alone() -> None:
    def devices(strategy: str) -> tuple[str, ...]:
        return devices_of(Task("test", "default", "uid", "chief", 0, strategy=strategy, cluster=CLUSTER))

    assert devices("ParameterServer") == tuple(f"/job:ps/replica:0/task:{n}/device:CPU:0" for n in range(2))
    assert devices("MultiWorkerMirrored") == ()


def test_no_call_waits_for_another_and_the_error_of_one_is_raised_at_the_end() -> None:
    barrier, ended = threading.Barrier(2), []

    def fail() -> None:
        barrier.wait(10)
        raise ValueError("lost")

    def end() -> None:
        barrier.wait(10)
        ended.append(True)

    with pytest.raises(ValueError, match="lost"):
        side_by_side([fail, end])
    assert ended
