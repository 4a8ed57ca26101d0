# SPDX-License-Identifier: Apache-2.0
"""The picture of the terminal: drawn of what a terminal shows, without anything from elsewhere."""

import sys

from tools.picture import drawn, epochs_after_the_recovery, line, training_process
from tools.terminal import Terminal

PRINTS = r"print('\x1b[1;32mgreen\x1b[0m and \x1b[33myellow\x1b[0m\n' * 30 + 'bar 1\rbar 2')"


def test_a_picture_has_the_colours_and_the_last_state_of_each_line() -> None:
    with Terminal([sys.executable, "-c", PRINTS], columns=108, lines=24) as terminal:
        assert terminal.end(30.0) == 0
        assert len(terminal.text()) == 31, "those that have scrolled away are there too"
        picture = drawn([line(row) for row in terminal.rows()[-3:]])
    assert "bar&#160;2" in picture
    assert "bar&#160;1" not in picture
    assert "green" in picture
    assert "url(http" not in picture, "a page that shows the picture loads no fonts"


def test_the_process_to_kill_and_the_moment_to_draw_are_read_from_the_screen() -> None:
    screen = ["worker-1     training       11   22  5", "Epoch 1/3", "worker-1     training       11   33  7"]
    assert training_process(screen) == 33
    assert epochs_after_the_recovery([*screen, "the first new step came 3 s", "Epoch 2/3", "Epoch 3/3"]) == 2
    assert epochs_after_the_recovery(screen) == 0
