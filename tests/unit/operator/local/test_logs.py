# SPDX-License-Identifier: Apache-2.0
"""Lines of a run's logs as they grow."""

import fcntl
import threading
from pathlib import Path

from dtjob.local.logs import follow
from dtjob.local.runs import LOCK


def test_following_ends_when_no_run_is_at_work(tmp_path: Path) -> None:
    logs = tmp_path / "first" / "run-2" / "logs"
    logs.mkdir(parents=True)
    (logs / "first-worker-1-0.log").write_text("d\n\x1b[31me\x1b[0m")
    lines: list[tuple[str, str]] = []
    came = threading.Event()

    def read() -> None:
        for line in follow(logs.parent, "first"):
            lines.append(line)
            if line[1] in ("d", "late"):
                came.set()

    with (tmp_path / "first" / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=read)
        thread.start()
        assert came.wait(10)
        came.clear()
        (logs / "first-worker-1-1.log").write_text("late\n")
        assert came.wait(10)
        assert thread.is_alive()
    thread.join(10)
    assert not thread.is_alive()
    assert lines[-1] == ("worker-1", "\x1b[31me\x1b[0m")
