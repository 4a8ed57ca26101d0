# SPDX-License-Identifier: Apache-2.0
import pytest

from dtjob.local.terminal_line import LONGEST_LINE, TerminalLine, plain


def shown(*pieces: str) -> list[str]:
    """The lines that a terminal has after these pieces, without colours."""
    line = TerminalLine()
    found = [ended for piece in pieces for ended in line.write(piece)]
    return [plain(text) for text in [*found, line.text]]


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("a\nb\n", ["a", "b", ""]),
        ("10%\r20%\r100%\n", ["100%", ""]),
        ("a longer line\rshort", ["short"]),
        ("a longer line\r\x1b[Kshort", ["short"]),
        ("gone\x1b[2K\rhere", ["here"]),
        ("\b\b\b\r 1/52 ━━" + "\b" * 8 + "\r52/52 ━━\n", ["52/52 ━━", ""]),  # Keras
        ("1/2 ━━" + "\b" * 6 + "\r\n", ["1/2 ━━", ""]),  # Keras, that ends in the middle of a pass
        ("\x1b[32m100%\r\x1b[0m\n", ["100%", ""]),  # colorama
        ("100%\r\x1b[?25h\n", ["100%", ""]),
        ("gone\r\x1b[K\n", ["", ""]),
        ("work |\b/\b-", ["work -"]),
        ("windows\r\n", ["windows", ""]),
        ("\x1b]0;title\x07text\x1b[2A\x1b7", ["text"]),
        ("a\tb\n", ["a\tb", ""]),
        ("unfinished\x1b[31", ["unfinished"]),
    ],
)
def test_a_bar_that_is_written_over_is_one_line(written: str, seen: list[str]) -> None:
    assert shown(written) == seen
    assert shown(*written) == seen, "whatever the pieces in which it comes"


def test_colours_stay_with_their_text() -> None:
    line = TerminalLine()
    assert list(line.write("\x1b[32mok\x1b[0m, \x1b[31mbad\nplain\n")) == [
        "\x1b[32mok\x1b[0m, \x1b[31mbad\x1b[0m",
        "plain",
    ]


def test_a_line_that_never_ends_does_not_fill_the_memory() -> None:
    line = TerminalLine()
    found = list(line.write("x" * (LONGEST_LINE + 1)))
    assert len(found) == 1
    assert line.text == ""
