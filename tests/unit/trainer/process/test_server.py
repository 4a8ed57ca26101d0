"""dtjob_trainer.process.server: whether the chief is still there."""

import socket

from dtjob_trainer.process.server import _listens


def test_the_chief_is_there_while_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as chief:
        address = f"127.0.0.1:{chief.getsockname()[1]}"
        assert _listens(address)
    assert not _listens(address)
