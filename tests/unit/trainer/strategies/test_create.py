# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.create: which strategies can be made, and when the tasks of a group meet."""

import socket
import threading
import time

import pytest
import tensorflow as tf

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import MissingDeviceError, StrategyError
from dtjob_trainer.strategies import create
from dtjob_trainer.strategies.create import wait_for_leader


def test_every_strategy_can_be_created() -> None:
    assert create._MAKERS.keys() == TRAITS.keys()


def see(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    """Have TensorFlow find so many GPUs."""
    found = [tf.config.PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(gpus)]
    real = tf.config.list_physical_devices
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: found if kind == "GPU" else real(kind))


@pytest.fixture(autouse=True)
def nobody_hides_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_a_program_that_hides_its_gpus_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    create.see_gpus(2, print)


@pytest.mark.parametrize(
    ("for_gpus", "error", "says"),
    [
        (False, StrategyError, r"given 2 of nvidia\.com/gpu.*is for CPUs alone.*tensorflow\[and-cuda\]"),
        (True, MissingDeviceError, r"does not find them: CUDA's libraries may be missing"),  # maybe not on another node
    ],
)
def test_a_task_that_was_given_gpus_does_not_train_without(
    monkeypatch: pytest.MonkeyPatch, for_gpus: bool, error: type[Exception], says: str
) -> None:
    see(monkeypatch, 0)
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: for_gpus)
    with pytest.raises(error, match=says):
        create.see_gpus(2, print)


@pytest.mark.parametrize(("given", "there", "told"), [(0, 0, 0), (0, 2, 0), (2, 2, 0), (2, 1, 1)])
def test_a_warning_is_printed_only_if_fewer_gpus_are_found_than_given(
    monkeypatch: pytest.MonkeyPatch, given: int, there: int, told: int
) -> None:
    see(monkeypatch, there)
    said: list[str] = []
    create.see_gpus(given, lambda message, level: said.append(message))
    assert len(said) == told


def test_a_worker_of_parameter_server_has_one_gpu() -> None:
    create.check_replicas(1)
    with pytest.raises(StrategyError, match=r"these have 2: give each one .*raise replicaSpecs\.worker\.replicas"):
        create.check_replicas(2)


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
