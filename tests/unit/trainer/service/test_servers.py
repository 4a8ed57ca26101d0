# SPDX-License-Identifier: Apache-2.0
"""How a data worker watches the process of the dispatcher, and a port that is taken."""

import fcntl
import os
import resource
import socket
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer import run
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import TaskError
from dtjob_trainer.service import servers
from dtjob_trainer.service.lost_workers import connect
from dtjob_trainer.service.servers import _is_closed, dispatch
from dtjob_trainer.strategies.proxies import PAST_THEM


def test_an_open_connection_shows_the_end_of_the_other_process() -> None:
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
        line = connect(address)
        assert line is not None
        theirs, _ = server.accept()
        theirs.sendall(b"settings")
        assert not _is_closed(line)
        theirs.close()
        line.settimeout(10)
        assert line.recv(64) in (b"settings", b"")
        assert _is_closed(line)
        line.close()
    assert connect(address) is None


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TaskError, match=f"network.dataPort {port} cannot be listened on"):
            dispatch(Task("job", "ns", "uid", "chief", 0, data_service=f"localhost:{port}"))


def test_a_data_worker_begins_anew_for_another_dispatcher_and_not_for_a_name_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lost node closes no connection. The new chief has another address."""
    here: Any = SimpleNamespace(shutdown=SimpleNamespace(wait_signalled=lambda seconds: False))
    monkeypatch.setattr(servers, "RENEW_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.2", 0)) as other:
        same, moved = (f"{host}:{port}" for host, port in (one.getsockname(), other.getsockname()))
        line = connect(same)
        assert line is not None
        found = [None, connect(same), None, connect(moved)]
        monkeypatch.setattr(servers, "connect", lambda address: found.pop(0))
        servers._watch(here, same, line)
        assert found == []


def test_a_process_with_many_open_files_sees_the_end_of_the_other_process() -> None:
    ours, theirs = socket.socketpair()
    many = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(2048, many[0]), many[1]))
    try:
        with ours, socket.socket(fileno=fcntl.fcntl(ours, fcntl.F_DUPFD, 1500)) as line:
            assert not _is_closed(line)
            theirs.close()
            assert _is_closed(line)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, many)


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
