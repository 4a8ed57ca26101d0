# SPDX-License-Identifier: Apache-2.0
"""Addresses as they are written, and an endpoint over HTTP."""

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from dtjob.kube.endpoints.endpoint import EndpointError, Pulse, parse_endpoint, serving
from dtjob.local.processes.addresses import free_ports


async def test_an_endpoint_answers_its_path_and_keeps_its_port() -> None:
    (port,) = free_ports(1)

    def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.method} {request.path}")

    async with serving("/a", answer, ("127.0.0.1", port), "--option"), aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/a") as answered:
            assert (answered.status, await answered.text()) == (200, "GET /a")
        async with session.get(f"http://127.0.0.1:{port}/b") as answered:
            assert answered.status == 404
        with pytest.raises(EndpointError, match=r"^--other: "):
            async with serving("/b", answer, ("127.0.0.1", port), "--other"):
                pass
    async with serving("/a", answer, ("127.0.0.1", port), "--option"):
        pass


@pytest.mark.parametrize(
    ("text", "host", "port"), [("127.0.0.1:80", "127.0.0.1", 80), (":8080", None, 8080), ("[::1]:8080", "::1", 8080)]
)
def test_an_endpoint_is_parsed_into_host_and_port(text: str, host: str | None, port: int) -> None:
    assert parse_endpoint(text) == (host, port)


@pytest.mark.parametrize("text", ["", "8080", "host", "host:", "host:http", "host:0", "host:70000", "::1:80"])
def test_a_text_that_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_endpoint(text)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_healthz_answers_503_with_the_names_of_tasks_that_were_not_attempted_again_in_time() -> None:
    clock = Clock()
    pulse = Pulse(clock)

    def answer() -> tuple[int, str | None]:
        answered = pulse.answer(make_mocked_request("GET", "/healthz"))
        return answered.status, answered.text

    assert answer() == (200, "ok\n")
    pulse.beat("resync", 10)
    pulse.beat("leader election", 5)
    clock.now = 7
    assert answer() == (503, "late: leader election\n")
    pulse.beat("leader election", 5)
    assert answer() == (200, "ok\n")
