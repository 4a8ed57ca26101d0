# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/run.svg: the terminal of a local run in which a worker is killed.

    make picture        # needs the packages of `make setup`; half a minute

It runs what `make run` runs, reads the process ID of worker-1 from the screen, ends that process with kill -9, and
draws the terminal as it is some epochs later. Nothing of the text is made up.
"""

import os
import re
import signal
import sys
from io import StringIO
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from pyte.screens import Char
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.text import Text

from tools.terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "run.svg"
COLUMNS, LINES = 108, 32
EXAMPLE = "examples/digits.yaml"
VICTIM = "worker-1"
KILLED_AT = 0.4
"""The part of all steps that is done by then."""
EPOCHS_AFTER = 3
"""Epochs on the screen after the recovery."""
SECONDS = 300.0
_STEP = re.compile(r"step (\d+) of (\d+) ")
_NAMES = {"brown": "yellow", "brightbrown": "bright_yellow"}
_FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)


def main() -> None:
    """Run, kill and draw."""
    PICTURE.write_text(drawn(recorded()))
    print(f"{PICTURE.relative_to(ROOT)} is written")


def recorded() -> list[Text]:
    """The lines of the terminal some epochs after the kill."""
    with TemporaryDirectory(dir=ROOT, prefix=".dtjob-") as work_directory:
        command = [str(Path(sys.executable).parent / "dtjob"), "run", EXAMPLE, "--work-dir", Path(work_directory).name]
        with Terminal(command, columns=COLUMNS, lines=LINES, directory=ROOT) as terminal:
            terminal.wait_until(lambda: progress(terminal) > KILLED_AT, SECONDS)
            os.kill(training_process(terminal.text()), signal.SIGKILL)
            terminal.wait_until(lambda: epochs_after_the_recovery(terminal.text()) >= EPOCHS_AFTER, SECONDS)
            lines = [line(row) for row in terminal.rows()[-LINES:]]
            terminal.end(SECONDS)
    return lines


def epochs_after_the_recovery(lines: list[str]) -> int:
    """How many epochs the screen shows after the first new step."""
    new_steps = [at for at, text in enumerate(lines) if "the first new step came" in text]
    return sum(text.startswith("Epoch ") for text in lines[new_steps[0] :]) if new_steps else 0


def progress(terminal: Terminal) -> float:
    """The part of all steps that is done, by the screen."""
    found = _STEP.findall("\n".join(terminal.text()))
    return int(found[-1][0]) / int(found[-1][1]) if found else 0.0


def training_process(lines: list[str]) -> int:
    """The process ID of VICTIM in the last table on the screen."""
    row = next(line for line in reversed(lines) if line.startswith(f"{VICTIM} "))
    supervisor_and_training = [int(word) for word in row.split() if word.isdecimal()][:2]
    return supervisor_and_training[1]


def line(row: dict[int, Char]) -> Text:
    """A line of the terminal with its colours."""
    text = Text()
    for style, cells in groupby((row[column] for column in range(COLUMNS)), key=style_of):
        text.append("".join(cell.data for cell in cells), style)
    text.rstrip()
    return text


def style_of(cell: Char) -> Style:
    """The style of a character."""
    colour = _NAMES.get(cell.fg, cell.fg)
    if re.fullmatch("[0-9a-f]{6}", colour):
        colour = f"#{colour}"
    return Style(color=re.sub("^bright(?=[a-z])", "bright_", colour), bold=cell.bold)


def drawn(lines: list[Text]) -> str:
    """The lines as a picture of a terminal."""
    while lines and not lines[-1]:
        lines.pop()
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor")
    for one in lines:
        console.print(one, no_wrap=True, crop=False)
    # Pages that show the picture load no fonts for it.
    form = _FONTS.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code", "ui-monospace, Menlo, Consolas")
    return console.export_svg(title="make run", code_format=form, unique_id="run")


if __name__ == "__main__":
    main()
