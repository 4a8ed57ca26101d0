# SPDX-License-Identifier: Apache-2.0
"""How a data worker sees the end of the process of the dispatcher, and a port that is taken."""

import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
import tensorflow as tf

from dtjob_trainer import run
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import TaskError
from dtjob_trainer.service import dispatcher, servers
from dtjob_trainer.strategies.proxies import PAST_THEM


def dispatcher_at(port: int = 0) -> tuple[Any, int]:
    """A server of gRPC, and its port."""
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, port


def test_a_data_worker_begins_anew_for_another_dispatcher(monkeypatch: pytest.MonkeyPatch) -> None:
    first, port = dispatcher_at()
    address = f"127.0.0.1:{port}"
    begun, others = list[Any](), list[Any]()

    def begin(config: Any) -> None:
        begun.append(config)
        if others:
            raise SystemExit
        first.stop(0).wait()
        others.append(dispatcher_at(port))

    monkeypatch.setattr(tf.data.experimental.service, "WorkerServer", begin)
    here: Any = SimpleNamespace(progress=SimpleNamespace(report=lambda **_: None))
    with pytest.raises(SystemExit):
        servers.serve(here, Task("job", "ns", "uid", "data", 1, data_service=address, data_address="localhost:2222"))
    assert [config.dispatcher_address for config in begun] == [address, address]
    others[0][0].stop(0)


def test_a_data_worker_notices_a_lost_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing closes its connections, and nothing answers."""
    server, port = dispatcher_at()
    lost = threading.Event()

    def pass_on(one: socket.socket, other: socket.socket) -> None:
        while (text := one.recv(4096)) and not lost.is_set():
            other.sendall(text)

    def connect_through(listening: socket.socket) -> None:
        one, _ = listening.accept()
        other = socket.create_connection(("127.0.0.1", port))
        for pair in ((one, other), (other, one)):
            threading.Thread(target=pass_on, args=pair, daemon=True).start()

    asks = [(name, 500) for name, _ in dispatcher.OPTIONS if name == "grpc.keepalive_time_ms"]
    monkeypatch.setattr(dispatcher, "OPTIONS", [*asks, ("grpc.http2.ping_timeout_ms", 500)])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=connect_through, args=(listening,), daemon=True).start()
        met = dispatcher.Dispatcher(f"127.0.0.1:{listening.getsockname()[1]}")
        met.greet()
        assert not met.ended.is_set()
        lost.set()
        met.greet()
        assert met.ended.wait(20)
    server.stop(0)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TaskError, match=f"network.dataPort {port} cannot be listened on"):
            servers.dispatch(Task("job", "ns", "uid", "chief", 0, data_service=f"localhost:{port}"))


@pytest.mark.parametrize(("role", "does"), [("data", "serve"), ("chief", "dispatch")])
def test_data_workers_and_the_dispatcher_meet_past_a_proxy(
    monkeypatch: pytest.MonkeyPatch, role: str, does: str
) -> None:
    """gRPC would ask the proxy of a container for the other pods."""
    found = []

    def note(*_: Any) -> None:
        found.append(os.environ.get(PAST_THEM))
        sys.exit()

    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv(PAST_THEM, "")
    monkeypatch.setattr(servers, does, note)
    task = Task("digits", "ns", "uid", role, 0, data_service="digits-chief-0.digits:2225")
    with pytest.raises(SystemExit):
        run._enter_strategy(SimpleNamespace(), task)  # type: ignore[arg-type]
    assert found == [".digits"]
