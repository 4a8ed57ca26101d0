# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import uuid

from dtjob.local.processes import leftovers


def sleeping(**variables: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], env={**os.environ, **variables})


async def test_processes_are_found_by_all_marks_and_killed():
    uid = str(uuid.uuid4())
    one, other = sleeping(DTJOB_UID=uid, DTJOB_ROLE="ps"), sleeping(DTJOB_UID=uid, DTJOB_ROLE="chief")
    try:
        assert set(leftovers.find({"DTJOB_UID": uid})) == {one.pid, other.pid}
        assert await leftovers.kill({"DTJOB_UID": uid, "DTJOB_ROLE": "ps"}) == []
        assert one.wait(10) == -9
        assert other.poll() is None
    finally:
        one.kill()
        other.kill()
        one.wait()
        other.wait()


async def test_processes_without_the_uid_are_not_killed():
    other = sleeping(DTJOB_ROLE="ps")
    try:
        assert await leftovers.kill({"DTJOB_ROLE": "ps"}) == []
        assert leftovers.find({}) == []
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
