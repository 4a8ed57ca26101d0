# SPDX-License-Identifier: Apache-2.0
"""The user's mistakes. In a file of its own, as the command line imports it before anything else."""


class BadInput(Exception):
    """The user's input cannot be used. `lines` say what is wrong and what to write instead."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
