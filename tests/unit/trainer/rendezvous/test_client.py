# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.client: reports over and over, over HTTP, and copes with what a network does."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from dtjob_trainer.errors import TaskError
from dtjob_trainer.rendezvous import client
from dtjob_trainer.rendezvous.client import HttpAsk, RendezvousClient
from dtjob_trainer.rendezvous.messages import Answer, Phase, Registration
from dtjob_trainer.supervisor.ports import rendezvous_server
from tests.unit.trainer.rendezvous.groups import registration

Say = Callable[[Registration, str], Awaitable[Answer]]


@contextlib.asynccontextmanager
async def served(say: Say) -> AsyncIterator[HttpAsk]:
    """A supervisor's server that answers as `say` does, and the asking of it."""
    server = rendezvous_server(say)
    port = await server.start("127.0.0.1", 0)
    try:
        yield HttpAsk(f"127.0.0.1:{port}", 3)
    finally:
        assert server._server is not None
        server._server.close()


async def test_registrations_and_answers_arrive_over_http() -> None:
    heard = []

    async def say(asked: Registration, address: str) -> Answer:
        heard.append((asked, address))
        return Answer("go", 3, "worker-1 was lost", ("worker-1",), (), "s")

    async with served(say) as ask:
        for _ in range(2):  # on one connection
            assert await ask(registration("worker-0")) == Answer("go", 3, "worker-1 was lost", ("worker-1",), (), "s")
    assert heard == [(registration("worker-0"), "127.0.0.1")] * 2


async def test_an_error_of_the_server_says_why() -> None:
    async def fail(_: Registration, __: str) -> Answer:
        raise RuntimeError("a bug")

    async with served(fail) as ask:
        with pytest.raises(ValueError, match=r"answered HTTP/1.1 500 .*RuntimeError: a bug"):
            await ask(registration("worker-0"))


async def test_a_connection_that_the_server_closed_is_opened_again() -> None:
    """The server closes each connection after its answer, and does not say so."""
    body = json.dumps(Answer("wait").to_json()).encode()

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer_once, "127.0.0.1", 0)
    async with server:
        ask = HttpAsk(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", 3)
        for _ in range(3):
            assert await ask(registration("worker-0")) == Answer("wait")


@pytest.mark.parametrize("address", ["", "chief", "chief:", ":80", "chief:http"])
def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(TaskError, match="DTJOB_RENDEZVOUS_ADDRESS is"):
        HttpAsk(address, 3)


async def test_the_client_repeats_requests_and_passes_on_answers_and_problems() -> None:
    outcomes: list[Answer | Exception] = [OSError("no route"), TimeoutError(), Answer("wait"), Answer("go", 1)]
    answered: list[str] = []
    problems: list[str] = []
    done = asyncio.Event()

    async def ask(_: Registration) -> Answer:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def on_answer(_: Registration, answer: Answer) -> None:
        answered.append(answer.kind)
        if answer.kind == "go":
            done.set()

    client = RendezvousClient(ask, lambda: registration("worker-0"), on_answer, problems.append)
    running = asyncio.create_task(client.run())
    await asyncio.wait_for(done.wait(), 30)
    running.cancel()
    assert answered == ["wait", "go"]
    assert problems == ["OSError: no route", "TimeoutError"]


async def test_a_change_of_phase_is_sent_at_once() -> None:
    """While an answer is held back, the question is withdrawn and asked anew."""
    asked: list[str] = []
    phase: Phase = "waiting"
    second = asyncio.Event()

    async def ask(said: Registration) -> Answer:
        asked.append(said.phase)
        if len(asked) == 2:
            second.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    client = RendezvousClient(ask, lambda: registration("worker-0", phase), lambda *_: None, lambda _: None)
    running = asyncio.create_task(client.run())
    await asyncio.sleep(0.01)
    phase = "preempted"
    client.news()
    await asyncio.wait_for(second.wait(), 30)
    running.cancel()
    assert asked == ["waiting", "preempted"]


async def test_a_name_that_is_resolved_late_takes_no_time_from_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SPARE_SECONDS", 0.1)
    monkeypatch.setattr(client, "hold_seconds", lambda members: 0.3)
    loop = asyncio.get_running_loop()
    resolve = loop.getaddrinfo

    async def late(host: str, *arguments: Any, **more: Any) -> Any:
        await asyncio.sleep(0.5)
        return await resolve(host, *arguments, **more)

    monkeypatch.setattr(loop, "getaddrinfo", late)

    async def say(asked: Registration, address: str) -> Answer:
        await asyncio.sleep(0.2)
        return Answer("wait")

    async with served(say) as ask:
        by_name = HttpAsk(f"localhost:{ask._place[1]}", 3)
        assert await by_name(registration("worker-0")) == Answer("wait")


async def test_an_error_in_handling_an_answer_is_raised_and_not_reported_as_a_problem() -> None:
    problems: list[str] = []

    async def ask(asked: Registration) -> Answer:
        return Answer("go", 1)

    def on_answer(asked: Registration, answer: Answer) -> None:
        raise OSError("no space left")

    running = RendezvousClient(ask, lambda: registration("worker-0"), on_answer, problems.append)
    with pytest.raises(OSError, match="no space left"):
        await asyncio.wait_for(running.run(), 10)
    assert not problems
