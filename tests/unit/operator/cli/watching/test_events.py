# SPDX-License-Identifier: Apache-2.0
"""The events of a job are its own and its pods'."""

from typing import Any

from dtjob.cli.watching.events import lines, of_job
from tests.unit.operator.cli.watching.jobs import NOW, job


def event(name: str, time: str, kind: str = "Pod", uid: str = "p", **more: Any) -> dict[str, Any]:
    about = {"kind": kind, "name": name, "uid": uid}
    return {"metadata": {}, "involvedObject": about, "lastTimestamp": time, "reason": "R", "type": "Normal", **more}


def test_other_objects_are_left_out_and_the_newest_is_last() -> None:
    ours = [
        event("digits-worker-0-1", "2026-11-23T11:59:00Z", message="pulled\n image", count=3),
        event("digits", "2026-11-23T11:58:00Z", "DistributedTrainingJob", "u", message="started"),
    ]
    others = [event("digits-2-worker-0-0", "2026-11-23T11:59:00Z"), event("digits-x", "2026-11-23T11:59:00Z")]
    assert list(lines(of_job([*ours, *others], job()), NOW)) == [
        "AGE       TYPE     REASON   OBJECT                  MESSAGE",
        "2m        Normal   R        job/digits              started",
        "1m (x3)   Normal   R        pod/digits-worker-0-1   pulled image",
    ]
