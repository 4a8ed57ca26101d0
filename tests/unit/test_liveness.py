"""What /healthz says."""

from __future__ import annotations

import socket

import aiohttp
import pytest

from dtjob.liveness import EndpointError, Pulse, parse_endpoint, serving


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_late_is_what_was_not_attempted_again() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    assert pulse.late() == []
    pulse.beat("resync", 10)
    pulse.beat("leader election", 5)
    clock.now = 7
    assert pulse.late() == ["leader election"]
    pulse.beat("leader election", 5)
    assert pulse.late() == []


async def test_healthz_over_http() -> None:
    clock, port = Clock(), free_port()
    pulse = Pulse(clock)
    async with serving(pulse, "127.0.0.1", port), aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")
        pulse.beat("resync", 10)
        clock.now = 11
        async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
            assert (answer.status, await answer.text()) == (503, "late: resync\n")
        with pytest.raises(EndpointError):
            async with serving(pulse, "127.0.0.1", port):
                pass


@pytest.mark.parametrize(
    ("text", "host", "port"), [("127.0.0.1:80", "127.0.0.1", 80), (":8080", None, 8080), ("[::1]:8080", "::1", 8080)]
)
def test_endpoints(text: str, host: str | None, port: int) -> None:
    assert parse_endpoint(text) == (host, port)


@pytest.mark.parametrize("text", ["", "8080", "host", "host:", "host:http", "host:0", "host:70000", "::1:80"])
def test_no_endpoints(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_endpoint(text)
