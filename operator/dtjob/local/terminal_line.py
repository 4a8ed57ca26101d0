# SPDX-License-Identifier: Apache-2.0
"""What a terminal makes of a program's output: a progress bar that is written over and over is one line. Pure."""

import codecs
import re
from collections.abc import Iterator

LONGEST_LINE = 64 * 1024
"""Characters. A longer line is cut into several: a program that never ends a line must not fill the memory."""
TASK_WIDTH = 12

_SEQUENCE = re.compile(
    r"(?P<style>\x1b\[[0-9;:]*m)"
    r"|\x1b\[[0-9;:?]*[ -/]*[@-~]?"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # such as a title of the window
    r"|\x1b.?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]")
_RESET = "\x1b[0m"


def task_head(task: str) -> str:
    """What a line begins with if several tasks are shown."""
    return f"{task:<{TASK_WIDTH}} | "


def plain(text: str) -> str:
    """A line of TerminalLine without its colours, and without blanks at its end."""
    return _SEQUENCE.sub("", text).rstrip()


def seen(line: str) -> str:
    """A whole line as a terminal shows it, with its colours: what follows the last return to its begin.

    Sequences that move elsewhere have no effect.
    """
    text = _SEQUENCE.sub(lambda found: found["style"] or "", _newest(line))
    if "\b" in (text := text.rstrip("\r\b")):
        kept: list[str] = []
        for character in _SEQUENCE.sub("", text).rstrip("\r\b"):
            if character != "\b":
                kept.append(character)
            elif kept:
                kept.pop()
        text = "".join(kept)
    text = _CONTROL.sub("", text)
    return text if "\x1b" not in text or text.endswith(_RESET) else text + _RESET


class TerminalLine:
    """The last line of a terminal, with its colours."""

    def __init__(self) -> None:
        self._written = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def text(self) -> str:
        """The line so far."""
        return seen(self._written)

    def write_bytes(self, data: bytes) -> Iterator[str]:
        """The same as `write`, of text in UTF-8 that may end within a character."""
        yield from self.write(self._decoder.decode(data))

    def write(self, text: str) -> Iterator[str]:
        """Take what the program has written. Yields each line that this ends."""
        *lines, self._written = (self._written + text).split("\n")
        yield from map(seen, lines)
        self._written = _newest(self._written)
        if len(self._written) > LONGEST_LINE:
            yield self.end()

    def end(self) -> str:
        """End the line. Returns it."""
        text, self._written = self.text, ""
        return text


def _newest(line: str) -> str:
    """The line from the last return to its begin on after which something was written or erased."""
    end = len(line)
    while (at := line.rfind("\r", 0, end)) >= 0:
        if _SEQUENCE.sub(lambda found: "K" if found[0].endswith("K") else "", line[at + 1 : end]).strip("\b"):
            break
        end = at
    return line[at + 1 :]
