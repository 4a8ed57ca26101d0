# SPDX-License-Identifier: Apache-2.0
import asyncio
import os
import signal
import subprocess

import pytest

from dtjob.local.processes.adopted import Adopted


@pytest.fixture
def sleeping():
    process = subprocess.Popen(["sleep", "600"])
    process.returncode = 0  # somebody else waits for it
    adopted = Adopted(process.pid)
    yield adopted
    if adopted.poll() is None:
        adopted.send_signal(signal.SIGKILL)


async def test_the_end_of_an_adopted_process_is_seen_with_its_signal(sleeping):
    waiting = asyncio.create_task(sleeping.wait())
    await asyncio.sleep(0)
    assert sleeping.poll() is None
    sleeping.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(waiting, 10) == -signal.SIGTERM == sleeping.returncode
    sleeping.send_signal(signal.SIGKILL)  # to nobody
    assert await sleeping.wait() == -signal.SIGTERM


async def test_a_wait_can_be_cancelled(sleeping):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(sleeping.wait(), 0.05)
    sleeping.send_signal(signal.SIGKILL)
    assert await asyncio.wait_for(sleeping.wait(), 10) == -signal.SIGKILL


@pytest.mark.parametrize(
    "look", [lambda ended: ended.send_signal(signal.SIGTERM), Adopted.poll], ids=["signal", "poll"]
)
async def test_an_end_that_was_polled_before_the_wait_is_returned_by_it(sleeping, look):
    """As when Ctrl-C meets a task that has just ended, and the event loop has not heard of that yet."""
    waiting = asyncio.create_task(sleeping.wait())
    await asyncio.sleep(0)
    os.kill(sleeping.pid, signal.SIGKILL)
    os.waitid(os.P_PIDFD, sleeping.fileno(), os.WEXITED | os.WNOWAIT)
    descriptor = sleeping.fileno()
    look(sleeping)
    assert await asyncio.wait_for(waiting, 10) == -signal.SIGKILL
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
