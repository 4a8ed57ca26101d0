# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.ports: what listens where."""

import asyncio
import os

import pytest

from dtjob.local.processes.addresses import free_ports
from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.supervisor.ports import PortInUse, listen


async def go(_: Registration, __: str) -> Answer:
    return Answer("go", 1)


async def answered(port: int, request: str) -> int:
    """The status code with which a port answers, 0 where nobody listens."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return 0
    writer.write(f"{request} HTTP/1.0\r\n\r\n".encode())
    first = await reader.readline()
    writer.close()
    return int(first.split()[1])


async def asked(chief: bool) -> list[int]:
    status, rendezvous = free_ports(2)
    task = Task("job", "ns", "uid", "chief", 0, status_port=status, rendezvous_port=rendezvous, parent=os.getpid())
    await listen(task, dict, go if chief else None)
    questions = ("GET /status", "POST /rendezvous")
    return [await answered(port, question) for port in (status, rendezvous) for question in questions]


async def test_each_port_answers_only_its_own_requests() -> None:
    """400: the port takes registrations, and the body is not one. 405: POST is not for the status port."""
    assert await asked(chief=True) == [200, 405, 404, 400]
    assert await asked(chief=False) == [200, 405, 0, 0]


async def test_a_port_that_another_process_has_is_named() -> None:
    (port,) = free_ports(1)
    task = Task("job", "ns", "uid", "chief", 0, rendezvous_port=port, parent=os.getpid())
    await listen(task, dict, go)
    with pytest.raises(PortInUse, match=f"DTJOB_RENDEZVOUS_ADDRESS {port} cannot be listened on") as raised:
        await listen(task, dict, go)
    words = f"PortInUse: {raised.value}"
    assert raised.value.facts == {"exitCode": 1, "stepped": False, "exception": words, "transient": True}
