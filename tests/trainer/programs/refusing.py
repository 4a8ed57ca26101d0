# SPDX-License-Identifier: Apache-2.0
"""Asks for what cannot be right, in programs that check what they are answered."""

from collections.abc import Callable
from typing import Any


def refused(words: list[str], call: Callable[[], Any], kind: type[Exception] = ValueError) -> None:
    """`call` must raise an error of this `kind` whose message holds all of `words`."""
    message = None
    try:
        call()
    except kind as error:
        message = str(error)
    assert message is not None, f"not refused: {words}"
    assert all(word in message for word in words), message
