# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.reaper: no child is reaped before its id is known."""

import asyncio
import os

from dtjob_trainer.supervisor.reaper import Reaper


def test_a_child_that_ends_while_it_is_started_is_reaped_once_its_id_is_known() -> None:
    known: list[int] = []
    ended: list[tuple[int, int, bool]] = []

    async def run() -> int:
        reaper = Reaper(lambda pid, code: ended.append((pid, code, pid in known)))
        reaper.start()
        with reaper.held():
            pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 3"], {})
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            await asyncio.sleep(0.05)  # the signal of its end is handled meanwhile
            assert not ended
            known.append(pid)
        return pid

    assert (asyncio.run(run()), 3, True) in ended
