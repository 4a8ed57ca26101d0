# SPDX-License-Identifier: Apache-2.0
"""How a data worker watches the process of the dispatcher, and a port that is taken."""

import socket

import pytest

from dtjob_trainer.errors import TaskError
from dtjob_trainer.service.servers import ADDRESS, _connect, _is_closed, dispatch


def test_an_open_connection_shows_the_end_of_the_other_process() -> None:
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
        line = _connect(address)
        assert line is not None
        theirs, _ = server.accept()
        theirs.sendall(b"settings")
        assert not _is_closed(line)
        theirs.close()
        line.settimeout(10)
        assert line.recv(64) in (b"settings", b"")
        assert _is_closed(line)
        line.close()
    assert _connect(address) is None


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TaskError, match=f"network.dataPort {port} cannot be listened on"):
            dispatch({ADDRESS: f"grpc://localhost:{port}"})
