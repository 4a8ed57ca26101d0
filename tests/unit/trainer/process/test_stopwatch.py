# SPDX-License-Identifier: Apache-2.0
"""How long a loop has trained, and stood still for saves."""

from dtjob_trainer.process.stopwatch import Stopwatch


def test_saves_are_part_of_the_time() -> None:
    now = [100.0]
    watch = Stopwatch(lambda: now[0])
    assert watch.keys() == {}
    watch.begin()
    assert watch.keys() == {"trainedSeconds": 0.0, "savedSeconds": 0.0}
    now[0] = 104.0
    with watch.saving():
        now[0] = 105.5
    now[0] = 107.25
    assert watch.keys() == {"trainedSeconds": 7.25, "savedSeconds": 1.5}
