# SPDX-License-Identifier: Apache-2.0
"""Several steps run in one call where nothing happens between them; and XLA compiles them where Keras would."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.support.harness import Cluster, by_hand

STEPS, EPOCHS = 40, 3
FIRST_CALLS = 3
"""Of one step each, until it is known how long a step takes."""
VALIDATION_CALLS = 7
"""Each twice as long as all before it, so that a stop is looked for."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What steps_in_calls.py has found."""
    said = by_hand("steps_in_calls.py", directory=tmp_path_factory.mktemp("run"))
    line = next(line for line in said.splitlines() if line.startswith("found "))
    told: dict[str, Any] = json.loads(line.removeprefix("found "))
    return told


def test_python_is_asked_once_an_epoch_and_not_once_a_step(found: dict[str, Any]) -> None:
    for kind, counted in found["calls"].items():
        assert sum(counted["train"]) == STEPS * EPOCHS, kind
        assert len(counted["train"]) <= EPOCHS + FIRST_CALLS, (kind, counted)
        assert len(counted["evaluate"]) <= EPOCHS * VALIDATION_CALLS, (kind, counted)


def test_each_batch_of_a_callback_is_a_call_and_no_bit_differs(found: dict[str, Any]) -> None:
    assert all(found["alike"].values()), found["alike"]


def test_a_step_that_is_a_call_of_its_own_is_traced_without_a_loop(found: dict[str, Any]) -> None:
    """The loop's trace would be a good part of what a start takes."""
    each, fourth = list(range(STEPS)), list(range(3, STEPS, 4))
    assert found["loops"] == {"unseen": [[True], []], "seen": [[False], [each]], "seen together": [[True], [fourth]]}


def test_data_that_turns_slow_holds_no_call_up(found: dict[str, Any]) -> None:
    """A stop is looked for between two calls."""
    calls, ready = found["slow"], 3
    assert sum(calls) == STEPS // 2 + 8
    assert len(calls) >= 8 - ready
    assert max(calls[-(8 - ready) :]) <= 1 + ready


def test_the_time_in_which_steps_wait_for_their_batches_is_known(found: dict[str, Any]) -> None:
    """Eight batches take 0.15 s each, of which up to three are ready before their steps."""
    assert found["waits"] > 0.15 * (8 - 3) * 0.8


def test_steps_that_the_program_wants_in_one_call_are_however_slow_they_are(found: dict[str, Any]) -> None:
    """Callbacks see the batches that Keras tells them of."""
    assert found["slow together"] == list(range(3, STEPS // 2 + 8, 4))


def test_xla_compiles_where_the_program_asks_for_it(found: dict[str, Any]) -> None:
    assert found["refused"] == {"True": True, "False": False, "auto": False}


def test_a_model_compiled_by_xla_equals_keras(found: dict[str, Any]) -> None:
    (logs, weights), (other_logs, other_weights) = found["xla"]
    assert logs.keys() == other_logs.keys()
    for name in logs:
        np.testing.assert_allclose(other_logs[name], logs[name], rtol=1e-5, atol=1e-6, err_msg=name)
    for one, other in zip(weights, other_weights, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("strategy", "counts"), [("Default", {"chief": 1}), ("MultiWorkerMirrored", {"worker": 2})])
def test_deterministic_steps_are_taken_without_a_clock(tmp_path: Path, strategy: str, counts: dict[str, int]) -> None:
    """TensorFlow refuses `tf.timestamp` then, on CPUs too."""
    with Cluster(tmp_path, strategy, counts, "deterministic.py") as run:
        run.run()
        said = next(iter(run.members.values())).output()
    calls = json.loads(said.partition("calls ")[2].partition("]")[0] + "]")
    assert sum(calls) == STEPS
    assert len(calls) < STEPS
