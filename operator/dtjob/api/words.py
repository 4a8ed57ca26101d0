# SPDX-License-Identifier: Apache-2.0
"""Words in messages, and words of the manifest that somebody has written in another way."""

import re
from collections.abc import Iterable


def meant(given: str, words: Iterable[str]) -> str | None:
    """The word of these that `given` is but for case, dashes, and the end of a class of TensorFlow's. None: no word."""
    plain = re.sub(r"[^a-z]", "", given.lower())
    return next((word for word in words if word.lower() in (plain, plain.removesuffix("strategy"))), None)


def counted(number: int, thing: str) -> str:
    """The number with its noun, as in `1 worker` and `2 workers`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
