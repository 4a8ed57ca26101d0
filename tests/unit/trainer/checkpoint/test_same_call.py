# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.same_call: what shows that a call is another one than that of a checkpoint."""

from typing import Any

import pytest

from dtjob_trainer.checkpoint import same_call

keras = pytest.importorskip("keras")
optimizers = keras.optimizers


class OfItsOwn:
    """Without a config."""

    def get_config(self) -> Any:
        raise NotImplementedError


def nested(rate: float) -> Any:
    return optimizers.LossScaleOptimizer(optimizers.Adam(optimizers.schedules.CosineDecay(rate, 10)))


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (optimizers.SGD(0.1), optimizers.SGD(0.1, name="another")),
        (nested(0.1), nested(0.1)),
        (OfItsOwn(), OfItsOwn()),
    ],
)
def test_the_same_optimizer_made_again_is_the_same(now: Any, before: Any) -> None:
    assert same_call.difference(same_call.described([now]), same_call.described([before])) is None


def test_another_rate_of_tf_keras_is_another_call() -> None:
    tf_keras = pytest.importorskip("tf_keras")
    now, before = (same_call.described([tf_keras.optimizers.Adam(rate)]) for rate in (0.1, 0.2))
    assert same_call.difference(now, before) == "learning_rate 0.1, and not 0.2"
    assert same_call.difference(now, same_call.described([tf_keras.optimizers.Adam(0.1)])) is None


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        ([optimizers.SGD(0.03)], [optimizers.SGD(0.3)], "learning_rate 0.03, and not 0.3"),
        ([optimizers.Adam()], [optimizers.SGD()], 'optimizer "Adam", and not "SGD"'),
        ([nested(0.1)], [nested(0.2)], "inner_optimizer "),
        ([optimizers.SGD()] * 2, [optimizers.SGD()], "2 optimizers, and not 1"),
    ],
)
def test_another_optimizer_is_told_in_words(now: list[Any], before: list[Any], words: str) -> None:
    found = same_call.difference(same_call.described(now), same_call.described(before))
    assert found is not None
    assert found.startswith(words.replace('"', ""))
