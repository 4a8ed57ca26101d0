# SPDX-License-Identifier: Apache-2.0
"""What a terminal makes of a program's output: a progress bar that is written over and over is one line. Pure."""

import codecs
import re
from collections.abc import Iterator
from itertools import groupby

LONGEST_LINE = 64 * 1024
"""Characters. A longer line is cut into several: a program that never ends a line must not fill the memory."""
TASK_WIDTH = 12
LONGEST_STYLE = 64
"""Characters of the colour sequences that hold at one place."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_TOKEN = re.compile(
    r"\x1b\[(?P<arguments>[0-9;:?]*)[ -/]*(?P<command>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # such as a title of the window
    r"|\x1b[^\[\]]"
    r"|(?P<control>[\x00-\x08\x0b-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x08\x0b-\x1f\x7f]+)"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*|\][^\x07\x1b]*)?$")
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
_RESET = "\x1b[0m"
_Decoder = codecs.getincrementaldecoder("utf-8")


def task_head(task: str) -> str:
    """What a line begins with if several tasks are shown."""
    return f"{task:<{TASK_WIDTH}} | "


def plain(text: str) -> str:
    """A line of TerminalLine without its colours, and without blanks at its end."""
    return _STYLE.sub("", text).rstrip()


def seen(line: str) -> str:
    """A whole line as a terminal shows it, with its colours."""
    if not _CONTROL.search(line):
        return line
    terminal = TerminalLine()
    return "".join(terminal.write(line)) + terminal.end()


class TerminalLine:
    """The last line of a terminal. Carriage returns, backspaces, erasing and colours have their effect.

    Sequences that move to other lines have none.
    """

    def __init__(self) -> None:
        self._cells: list[tuple[str, str]] = []
        """A character and its colour sequences, for each column."""
        self._column, self._style, self._held = 0, "", ""
        self._decoder = _Decoder(errors="replace")

    @property
    def text(self) -> str:
        """The line so far, with its colours."""
        return "".join(
            f"{style}{characters}{_RESET}" if style else characters
            for style, cells in groupby(self._cells, key=lambda cell: cell[1])
            if (characters := "".join(character for character, _ in cells))
        )

    def write_bytes(self, data: bytes) -> Iterator[str]:
        """The same as `write`, of text in UTF-8 that may end within a character."""
        yield from self.write(self._decoder.decode(data))

    def write(self, text: str) -> Iterator[str]:
        """Take what the program has written. Yields each line that this ends, with its colours."""
        text = self._held + text
        unfinished = _UNFINISHED.search(text, max(0, len(text) - LONGEST_STYLE))
        self._held = unfinished[0] if unfinished else ""
        *lines, rest = text[: len(text) - len(self._held)].split("\n")
        for line in lines:
            if not self._cells and not self._style and not _CONTROL.search(line):
                yield line
                continue
            self._put(line)
            yield self.end()
        self._put(rest)
        if len(self._cells) > LONGEST_LINE:
            yield self.end()

    def end(self) -> str:
        """End the line. Returns it, with its colours."""
        text = self.text
        self._cells, self._column = [], 0
        return text

    def _put(self, text: str) -> None:
        for token in _TOKEN.finditer(text):
            if characters := token["text"]:
                self._cells += [(" ", "")] * (self._column - len(self._cells))
                end = self._column + len(characters)
                self._cells[self._column : end] = [(character, self._style) for character in characters]
                self._column = end
            elif token["control"] == "\r":
                self._column = 0
            elif token["control"] == "\b":
                self._column = max(0, self._column - 1)
            elif token["command"] == "m":
                self._colour(token[0], token["arguments"])
            elif token["command"] == "K":
                self._erase(token["arguments"])

    def _colour(self, sequence: str, arguments: str) -> None:
        if arguments.strip("0") == "":
            self._style = ""
        else:
            self._style = sequence if len(self._style) > LONGEST_STYLE else self._style + sequence

    def _erase(self, arguments: str) -> None:
        match arguments:
            case "" | "0":
                del self._cells[self._column :]
            case "1":
                self._cells[: self._column] = [(" ", "")] * min(self._column, len(self._cells))
            case "2":
                self._cells = []
