# SPDX-License-Identifier: Apache-2.0
"""Optimizers of Keras by themselves: where its own fit is wrong, and a loss scale that several workers adjust."""

from pathlib import Path

from tests.trainer.support.harness import by_hand


def test_momentum_is_kept_and_a_step_is_unscaled_by_its_own_scale(tmp_path: Path) -> None:
    by_hand("optimizers_by_hand.py", directory=tmp_path)
