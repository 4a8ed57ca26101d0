# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.create: every strategy that has traits can be made, and no other."""

import pytest
import tensorflow as tf

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import MissingDeviceError, StrategyError
from dtjob_trainer.strategies import create


def test_every_strategy_can_be_created() -> None:
    assert create._MAKERS.keys() == TRAITS.keys()


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(StrategyError, match=r"spec\.strategy 'Other' is not one"):
        create.create(Task("job", "default", "uid", "worker", 0, strategy="Other"))


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


def test_a_task_that_was_given_gpus_does_not_train_without(monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch, 0)
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: False)
    with pytest.raises(StrategyError, match=r"given 2 of nvidia\.com/gpu.*is for CPUs alone.*tensorflow\[and-cuda\]"):
        create.see_gpus(2, print)


def test_gpus_that_are_not_found_may_be_there_on_another_node(monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch, 0)
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: True)
    with pytest.raises(MissingDeviceError, match=r"does not find them: CUDA's libraries may be missing"):
        create.see_gpus(1, print)


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
