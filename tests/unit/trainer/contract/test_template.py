# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.template: the supervisor's event loop goes on while the template is busy."""

import asyncio
import contextlib
import os
import socket
import threading

import pytest

from dtjob_trainer.contract import template
from dtjob_trainer.contract.template import Template

CHILD = 4711


def waiting(answers: threading.Event) -> Template:
    """A template that answers a request once `answers` is set."""
    made = Template()
    theirs = made._theirs.dup()
    made.handed_over()
    theirs.send(str(os.getpid()).encode())

    def serve() -> None:
        with theirs:
            _, descriptors, _, _ = socket.recv_fds(theirs, 1 << 20, 8)
            assert not descriptors
            answers.wait(10)
            with contextlib.suppress(OSError):  # the other end is closed if the answer was not waited for
                theirs.send(str(CHILD).encode())

    threading.Thread(target=serve, daemon=True).start()
    return made


def test_other_tasks_are_answered_while_the_template_imports() -> None:
    answers = threading.Event()

    async def run() -> int | None:
        made = waiting(answers)
        asked = asyncio.create_task(made.spawn(["a.py"], {}, {}))
        await asyncio.sleep(0.05)
        assert not asked.done()
        answers.set()
        return await asked

    assert asyncio.run(run()) == CHILD


def test_a_template_that_does_not_answer_in_time_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(template.os, "kill", lambda pid, _: killed.append(pid))
    monkeypatch.setattr(template, "REPLY_SECONDS", 0.05)
    answers = threading.Event()

    async def run() -> tuple[int | None, int | None]:
        made = waiting(answers)
        return await made.spawn(["a.py"], {}, {}), made.pid

    assert asyncio.run(run()) == (None, None)
    answers.set()
    assert killed == [os.getpid()]
