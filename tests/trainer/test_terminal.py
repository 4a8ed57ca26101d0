# SPDX-License-Identifier: Apache-2.0
"""`dtjob run` on a terminal of 80 columns, while its process is killed."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.own_ports import DTJOB
from tools.terminal import Terminal

pytestmark = pytest.mark.timeout(300)

SECONDS = 150.0
PROGRAM = """
import pathlib, time, keras, numpy

class Hold(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        while self.epoch == 3 and not pathlib.Path(GATE).exists():
            time.sleep(0.05)

print("hello from the program")
x = numpy.random.default_rng(0).normal(size=(64, 4)).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(x, x.sum(axis=1), batch_size=16, epochs=12, callbacks=[Hold()])
print("loading", end="")
print("\\rloaded ")
"""


def test_the_terminal_shows_the_program_above_a_live_view_through_a_kill(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    (tmp_path / "train.py").write_text(f"GATE = {str(gate)!r}\n{PROGRAM}")
    command = [*DTJOB, "run", "train.py"]
    with Terminal(command, columns=80, lines=24, directory=tmp_path) as terminal:
        terminal.wait_until(lambda: any("importing TensorFlow" in line for line in terminal.text()), SECONDS)
        terminal.wait_until(lambda: any("epoch 4/12, step" in line for line in terminal.text()), SECONDS)
        (row,) = [line.split() for line in terminal.text() if line.startswith("chief-0")]
        assert row[1] == "training"
        gate.touch()
        os.kill(int(row[2]), signal.SIGKILL)
        code = terminal.end(SECONDS)
        lines = terminal.text()
    text = "\n".join(lines)
    assert code == 0, text
    assert lines.count("hello from the program") == 2, text
    killed = next(at for at, line in enumerate(lines) if "chief-0 was killed (SIGKILL)" in line)
    assert "Epoch 3/12" in lines[:killed]
    assert [line for line in lines[killed:] if line.startswith("Epoch ")][-1] == "Epoch 12/12"
    assert "loaded" in lines[killed:]
    bars = [line for line in lines if re.match("4/4 .*loss: ", line)]
    assert len(bars) in (12, 13), "each epoch has one line, but for the one that was killed"
    assert len([line for line in lines if line.startswith("TASK ")]) == 1, "the view is drawn over, not again"
    assert re.search(r"epoch 12/12, step 48 of 48 \(100%\)", text)
    assert "last step            48 of 48: loss " in text
