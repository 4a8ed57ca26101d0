# SPDX-License-Identifier: Apache-2.0
"""Words that are written in another way than the manifest has them."""

import pytest

from dtjob.api.spec.strategy import Strategy
from dtjob.api.words import counted, meant


@pytest.mark.parametrize("strategy", Strategy)
def test_a_word_is_known_in_any_case_and_with_dashes(strategy: Strategy) -> None:
    for written in (strategy.lower(), strategy.upper(), f"{strategy}Strategy"):
        assert meant(written, Strategy) is strategy
    assert meant("multi-worker_mirrored", Strategy) == "MultiWorkerMirrored"


def test_another_word_is_not_guessed() -> None:
    assert meant("Horovod", Strategy) is None
    assert meant("", Strategy) is None


def test_a_single_thing_has_no_plural() -> None:
    assert [counted(number, "worker") for number in (0, 1, 2)] == ["0 workers", "1 worker", "2 workers"]
