# SPDX-License-Identifier: Apache-2.0
"""The ports of a supervisor under anything that a pod of the same namespace may send, as Hypothesis makes it up."""

import asyncio
import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.rendezvous.tails import LONGEST, Tails
from dtjob_trainer.supervisor.ports import Server, rendezvous_server, status_server
from tests.unit.fuzzed import VALUES, fuzzed
from tests.unit.trainer.rendezvous.groups import GROUP, mirrored, registration

TAIL = {"uid": "uid", "task": "worker-1", "attempt": 0, "lines": "worker-1.0 | a\n"}
SENT = (registration("worker-1").to_json(), registration("chief-0", "running", generation=1).to_json(), TAIL)
MOST = 2 * len(GROUP)
"""Tails that are kept."""


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A message with some fields of another value, any JSON, or any bytes."""
    known = dict(draw(st.sampled_from(SENT)))
    known |= draw(st.dictionaries(st.sampled_from(sorted(known)), VALUES, max_size=3))
    text = st.just(json.dumps(known).encode())
    deep = st.builds(lambda n: b"[" * n + b"]" * n, st.sampled_from((10, 2000, 30_000)))
    digits = st.builds(lambda n: b'{"step": ' + b"9" * n + b"}", st.sampled_from((20, 5000)))
    return draw(st.one_of(text, text, VALUES.map(lambda one: json.dumps(one).encode()), deep, digits, st.binary()))


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request with such a body, whose length is told truly or not, in pieces or chunked; or any bytes."""
    body = draw(bodies())
    method, path = (
        draw(st.sampled_from(("POST", "GET", "HEAD", "\x00"))),
        draw(st.sampled_from(("/rendezvous", "/log", "/status", "*"))),
    )
    length: Any = draw(
        st.sampled_from((len(body), len(body), len(body), len(body) + 1, 0, -1, "1e3", 10**9, "9" * 5000))
    )
    more = draw(st.sampled_from(("", "Connection: close\r\n", "Transfer-Encoding: chunked\r\n", ":\r\n\xff")))
    head = f"{method} {path} HTTP/1.1\r\nContent-Length: {length}\r\n{more}\r\n".encode("latin-1")
    return draw(st.sampled_from((head + body, head + body, (head + body)[: len(head) + 3], body)))


def tail(attempt: int) -> bytes:
    """The longest tail of a pod that does not exist, in a whole request."""
    body = json.dumps({**TAIL, "attempt": attempt, "lines": "x" * LONGEST}).encode()
    return f"POST /log HTTP/1.1\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


async def answered(server: Server, sent: list[bytes]) -> None:
    """Send these to the server, each on a connection of its own, and then hear whether it still answers. HTTP 500
    is the answer to a bug, and fails."""
    port = await server.start("127.0.0.1", 0)
    try:
        for one in sent:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(one)
            writer.write_eof()
            heard = b""
            try:
                while more := await reader.read(1 << 16):
                    heard += more
            except ConnectionError:
                pass
            assert b"HTTP/1.1 500 " not in heard, heard
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 ")
        writer.close()
    finally:
        assert server._server is not None
        server._server.close()


@fuzzed(15)
@given(sent=st.lists(requests(), min_size=1, max_size=8))
def test_a_supervisor_answers_on_after_any_requests(sent: list[bytes]) -> None:
    """None of them starts training, and what they leave behind is bounded."""
    rendezvous, tails, raised = mirrored(), Tails("uid", len(GROUP)), []

    async def register(said: Registration, address: str) -> Answer:
        answer = rendezvous.register(said, address, 0.0)
        assert answer.kind != "go"
        return answer

    async def play() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        await answered(rendezvous_server(register, tails.take), [*sent, *map(tail, range(MOST + 2))])
        await answered(status_server(lambda: {"task": "chief-0", "step": 4}, {}), sent)

    asyncio.run(play())
    assert raised == []
    assert rendezvous.generation == 0
    assert len(tails.text()) == MOST * LONGEST


@fuzzed(50)
@given(sent=st.lists(bodies(), max_size=8))
def test_honest_tasks_start_beside_any_registrations(sent: list[bytes]) -> None:
    """These know all but the random names of the supervisors. They come from another address than the tasks' own."""
    rendezvous = mirrored()

    def hostile() -> None:
        for body in sent:
            try:
                said = replace(Registration.from_json(json.loads(body)), supervisor="its own")
            except (ValueError, RecursionError):
                continue
            assert rendezvous.register(said, "10.6.6.6", 1.0).kind not in ("go", "done")

    hostile()
    for number, task in enumerate(GROUP):
        own = f"10.0.0.{number}"
        rendezvous.register(registration(task), own, 1.0)
        rendezvous.name_resolved(task, task, [own], 1.0)
        hostile()
    kinds = [rendezvous.register(registration(task), f"10.0.0.{number}", 2.0).kind for number, task in enumerate(GROUP)]
    assert kinds == ["go"] * len(GROUP)
