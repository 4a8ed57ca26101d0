# SPDX-License-Identifier: Apache-2.0
"""For how long steps wait for their input where devices work beside the host, as GPUs do. Here asynchronous CPUs do."""

import json
from pathlib import Path

from tests.trainer.support.harness import by_hand


def test_only_an_input_that_holds_steps_up_is_waited_for_and_no_bit_differs(tmp_path: Path) -> None:
    """A batch of the overlapped input takes half as long as a step, and a callback at the end of epochs takes 2 s."""
    said = by_hand("overlapped.py", directory=tmp_path)
    found = json.loads(next(line for line in said.splitlines() if line.startswith("found ")).removeprefix("found "))
    shares = {name: share for name, (share, _) in found.items()}
    assert shares["of a slow input"] > 0.4, shares
    assert shares["of a slow input that steps read"] > 0.4, shares
    assert shares["of an overlapped input"] < 0.25, shares
    assert shares["unmeasured"] is None
    assert all(weights == found["unmeasured"][1] for _, weights in found.values())
