# SPDX-License-Identifier: Apache-2.0
"""Words of the manifest that somebody has written in another way."""

import re
from collections.abc import Iterable


def meant(given: str, words: Iterable[str]) -> str | None:
    """The word of these that `given` is but for case, dashes, and the end of a class of TensorFlow's. None: no word."""
    plain = re.sub(r"[^a-z]", "", given.lower())
    return next((word for word in words if word.lower() in (plain, plain.removesuffix("strategy"))), None)
