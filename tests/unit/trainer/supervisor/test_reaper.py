# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.reaper: no child is reaped before its id is known; kills for want of memory."""

import asyncio
import os
from pathlib import Path

from dtjob_trainer.supervisor.reaper import Reaper, oom_kills


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


def test_the_kernels_count_of_kills_for_want_of_memory_is_read_in_both_versions_of_cgroups(tmp_path: Path) -> None:
    assert oom_kills(tmp_path) == 0
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert oom_kills(tmp_path) == 2
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 3\noom_kill 3\noom_group_kill 0\n")
    assert oom_kills(tmp_path) == 3
