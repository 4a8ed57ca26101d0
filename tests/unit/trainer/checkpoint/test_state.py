# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.state: a state is read as it was written, and what is no such state is refused in words."""

import json
from typing import Any

import pytest

from dtjob_trainer.checkpoint import packing, state
from dtjob_trainer.checkpoint.state import Call, CallbackState, FitState, RunState, TrainState
from dtjob_trainer.data.other_batches import Position
from dtjob_trainer.errors import CheckpointError

WHOLE = RunState(
    FitState({"loss": 0.5}, {"loss": [1.0, 0.5]}, [CallbackState("Best", {"wait": 2})]),
    7,
    exact=False,
    stopped=True,
    position=Position(began=4, passes=1, pass_began=4, length=4, ended=1),
    call=Call("uid", {"worker": 2, "replicas": 2}, [{"optimizer": "SGD"}]),
    groups=((0, 3), (5, 2)),
    earlier=[3, 5],
)


def stored(of: RunState[Any], **changed: Any) -> dict[str, Any]:
    text, _ = packing.pack(of)
    return {**json.loads(text), **changed}


@pytest.mark.parametrize("of", [WHOLE, RunState(TrainState({"loss": 0.5}), 3), RunState(TrainState())])
def test_a_state_is_read_as_it_was_written(of: RunState[Any]) -> None:
    assert state.read_state(stored(of), type(of.loop), "ckpt-7", "choose another") == of


@pytest.mark.parametrize(
    ("kept", "loop", "changed", "words"),
    [
        (WHOLE, TrainState, {}, r"ckpt-7 was written by dtjob_trainer\.fit, and dtjob_trainer\.train cannot go on"),
        (RunState(TrainState()), FitState, {}, r"by dtjob_trainer\.train, and dtjob_trainer\.fit cannot .* same calls"),
        (WHOLE, FitState, {"format": 7}, "ckpt-7 has format 7, and this version of dtjob reads format 1 alone"),
        (WHOLE, FitState, {"format": None}, "ckpt-7 has format None"),
        (WHOLE, FitState, {"skipped": 3}, "'skipped'.* another version of dtjob wrote it"),
        (WHOLE, FitState, {"loop": {"history": {}, "losses": []}}, "'losses'"),
        (WHOLE, FitState, {"loop": {"callbacks": [{"of": "Best"}]}}, "'state'"),
    ],
)
def test_a_checkpoint_of_another_format_or_of_the_other_call_is_refused(
    kept: RunState[Any], loop: Any, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(CheckpointError, match=words) as refused:
        state.read_state(stored(kept, **changed), loop, "/checkpoints/ckpt-7", "choose another checkpoint.storage")
    assert str(refused.value).endswith("choose another checkpoint.storage to train from the beginning")
