# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.serving: whether the chief is still there."""

import socket

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.process.serving import THREADS, listens, settings_of


def test_the_chief_is_there_while_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as chief:
        address = f"127.0.0.1:{chief.getsockname()[1]}"
        assert listens(address)
    assert not listens(address)


@pytest.mark.parametrize("role", ["worker", "ps"])
def test_a_server_takes_gpu_memory_as_it_needs_it_and_a_ps_none(role: str) -> None:
    """What is set in TensorFlow's own context is not known to a server."""
    pytest.importorskip("tensorflow")
    found = settings_of(Task("job", "default", "uid", role, 0, strategy="ParameterServer"))
    assert found.gpu_options.allow_growth
    assert found.inter_op_parallelism_threads >= THREADS
    assert dict(found.device_count) == ({"GPU": 0} if role == "ps" else {})
