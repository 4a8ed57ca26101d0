# SPDX-License-Identifier: Apache-2.0
"""A callback whose state no checkpoint can hold ends the program before its first step, not hours later in a save."""

from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster


@pytest.mark.parametrize("kept", [True, False])
def test_a_callback_state_that_cannot_be_saved_is_an_error_before_the_first_step(tmp_path: Path, kept: bool) -> None:
    """Without checkpoints nobody asks for it."""
    checkpoint = {"everySteps": 1000} if kept else None
    with Cluster(tmp_path, "Default", {"chief": 1}, "unkept_state.py", checkpoint=checkpoint) as run:
        run.start()
        assert run["chief-0"].exit_code() == (1 if kept else 0)
        said = "callbacks: Forgets: get_state() holds a set; return numbers, text, lists, dicts or arrays"
        assert (said in run["chief-0"].output()) == kept
        assert (run["chief-0"].status.get("step") or 0) == (0 if kept else 4)
