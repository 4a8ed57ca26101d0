# SPDX-License-Identifier: Apache-2.0
"""Numbers of things in messages."""


def counted(number: int, thing: str) -> str:
    """The number with its noun, as in `1 worker` and `2 workers`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
