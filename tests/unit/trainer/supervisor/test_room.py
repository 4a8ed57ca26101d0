# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.room: whether TensorFlow can listen."""

import socket

from dtjob_trainer.supervisor.room import port_is_free


def test_a_port_is_free_once_its_listener_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not port_is_free(port)
    assert port_is_free(port)


def test_connections_that_linger_do_not_matter() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()  # the end that closes first stays in TIME_WAIT
    assert port_is_free(port)
