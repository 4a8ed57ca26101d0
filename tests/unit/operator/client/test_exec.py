# SPDX-License-Identifier: Apache-2.0
"""A command in a container with our streams, against a stand-in that speaks the protocols of an API server."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from aiohttp import web

from dtjob.client import exec as executing
from dtjob.client.cluster import Cluster
from dtjob.client.errors import NotReached, Refused
from dtjob.client.exec import exit_code, run_in_task
from dtjob.client.streams import CommandFailed
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.stand_in import answering
from tests.unit.operator.client.verbs.jobs import JOBS, PODS, pod

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STARTED = """
import sys
from dtjob.client import exec
from dtjob.client.cluster import Cluster
from dtjob.client.connection import Connection
from dtjob.client.kubeconfig import Access
cluster = Cluster(Connection(Access(sys.argv[1], None, lambda: None, "team")), "team")
how = {"stdin": "i" in sys.argv[2], "tty": "t" in sys.argv[2]}
sys.exit(exec.run_in_task(cluster, "digits", sys.argv[3] or None, None, sys.argv[4:], **how))
"""


ENDED = {"terminated": {"exitCode": 0}}
ALL = (pod("chief-0", state=ENDED), pod("chief-0", 1), pod("worker-0", state=ENDED), pod("worker-1"))


def listed(*pods: Any) -> dict[str, Any]:
    return {"items": pods, "metadata": {}}


def ended(code: int) -> bytes:
    causes = [{"reason": "ExitCode", "message": str(code)}]
    failure = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
    return json.dumps(failure if code else {"status": "Success"}).encode()


async def _exec(request: web.Request) -> web.StreamResponse:
    """Says what was asked for, and then what comes in, in capital letters, until the input is closed or says end."""
    socket = web.WebSocketResponse(protocols=PROTOCOLS)
    await socket.prepare(request)
    asked = [name for name in ("stdin", "stdout", "stderr", "tty") if request.query.get(name) == "true"]
    await socket.send_bytes(b"\x01" + " ".join([*asked, *request.query.getall("command")]).encode() + b"\n")
    if "stderr" in asked:
        await socket.send_bytes(b"\x02a warning\n")
    if "stdin" in asked:
        async for message in socket:
            if message.data == b"\xff\x00":
                break
            if message.data[:1] == b"\x04":
                await socket.send_bytes(b"\x01size " + message.data[1:] + b"\n")
            else:
                await socket.send_bytes(b"\x01" + message.data[1:].upper())
            if b"end" in message.data:
                break
    await socket.send_bytes(b"\x03" + ended(int(request.query.getall("command")[-1])))
    await socket.close()
    return socket


async def _json(found: Any, _: web.Request) -> web.StreamResponse:
    return web.json_response(found)


@pytest.fixture
def stand_in() -> Iterator[str]:
    """Its URL."""
    handlers = {f"{PODS}/{name}/exec": _exec for name in ("digits-chief-0-1", "digits-worker-1-0")}
    objects = {f"{JOBS}/digits": {}, PODS: listed(*ALL)}
    with answering(handlers | {path: partial(_json, found) for path, found in objects.items()}) as url:
        yield url


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(stand_in: str) -> Run:
    def call(how: str, *command: str, task: str = "", given: str | None = None) -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, "-c", STARTED, stand_in, how, task, *command]
        return subprocess.run(words, input=given, capture_output=True, text=True, check=False, timeout=60)

    return call


@pytest.mark.parametrize(("code", "task"), [(0, ""), (3, "worker-1")])
def test_output_and_exit_code_of_a_command_in_a_task_are_ours(run: Run, code: int, task: str) -> None:
    done = run("", "check", str(code), task=task)
    assert (done.returncode, done.stdout, done.stderr) == (code, f"stdout stderr check {code}\n", "a warning\n")


def test_a_command_sees_our_input_and_its_end(run: Run) -> None:
    done = run("i", "cat", "0", given="one\ntwo\n")
    assert (done.returncode, done.stdout) == (0, "stdin stdout stderr cat 0\nONE\nTWO\n")


async def test_a_command_that_reads_slowly_does_not_fill_our_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a file of many gigabytes."""

    class Busy:
        protocol = ""

        async def send_bytes(self, _: bytes) -> None:
            await asyncio.Event().wait()

    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    monkeypatch.setattr(executing, "_INPUT", ours)
    sending = asyncio.create_task(executing._send_input(Busy()))  # type: ignore[arg-type]
    taken, full = 0, 0
    while full < 20 and taken < 100_000_000:
        try:
            taken += os.write(theirs, b"x" * 65536)
            full = 0
        except BlockingIOError:
            full += 1
            await asyncio.sleep(0.01)
    sending.cancel()
    os.close(theirs)
    assert taken < 10_000_000


def test_a_terminal_passes_on_keys_and_its_size(stand_in: str) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", STARTED, stand_in, "it", "", "bash", "0"]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while b"size" not in seen:
            seen += os.read(ours, 1024)
        os.write(ours, b"\x03end")  # Ctrl-C is a key for the command
        while b"\x03END" not in seen:
            seen += os.read(ours, 1024)
        assert process.wait(60) == 0
    os.close(ours)
    assert b"stdin stdout tty bash 0" in seen
    assert b'"Width"' in seen


def test_a_command_that_cannot_be_run_is_an_error() -> None:
    with pytest.raises(CommandFailed, match="no such file"):
        exit_code({"status": "Failure", "message": "bash:\nno such file"})
    with pytest.raises(NotReached, match="the connection to the pod broke"):
        exit_code({})


def test_a_task_that_does_not_run_is_named(cluster: Cluster, server: ApiServer) -> None:
    server.answer(f"GET {JOBS}/digits", {})
    server.answer(f"GET {PODS}", listed(*ALL), listed(pod("worker-0", state=ENDED), pod("worker-1")))
    with pytest.raises(Refused, match="digits: no pod of worker-0 runs; dtjob status digits says why"):
        run_in_task(cluster, "digits", "worker-0", None, ["ls"])
    with pytest.raises(Refused, match="the pod of its first task does not run"):
        run_in_task(cluster, "digits", None, None, ["ls"])
