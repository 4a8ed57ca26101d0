# SPDX-License-Identifier: Apache-2.0
"""The pieces of programs in docs/training/, in a program that has what they name; the first scripts of the pages."""

import subprocess
from pathlib import Path

import pytest

from tests.own_ports import DTJOB
from tests.trainer.support.harness import by_hand
from tests.unit.page_commands import ROOT, blocks

DOCS = ROOT / "docs"
PAGES = (DOCS / "training" / "data.md", DOCS / "training" / "calls.md", DOCS / "training" / "your-script.md")
BEFORE = """
import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

optimizer = keras.optimizers.SGD(0.1)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")])
x, y = np.random.default_rng(1).random((256, 4), "float32"), np.arange(256) % 3
names = ["data.tfrecord"]
with tf.io.TFRecordWriter(names[0]) as file:
    for row in x:
        file.write(row.tobytes())


def decode(record):
    return tf.io.decode_raw(record, tf.float32)


"""
AFTER = """
print("rows of a batch", len(next(iter(data))))
"""


@pytest.mark.slow
def test_the_custom_loop_the_dataset_and_the_first_script_of_the_pages_run_in_a_group(tmp_path: Path) -> None:
    pieces = [code for page in PAGES for kind, code in blocks(page) if kind == "python"]
    assert len(pieces) == 5
    (tmp_path / "train.py").write_text(BEFORE + "\n".join(pieces) + AFTER)
    run = [*DTJOB, "run", "train.py", "--strategy", "MultiWorkerMirrored", "--workers", "2"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    logs = {file.name: file.read_text() for file in (tmp_path / ".dtjob").rglob("train-worker-*.log")}
    assert done.returncode == 0, logs
    assert any("step=1000" in log and "loss=" in log for log in logs.values())
    assert ["rows of a batch 256" in log for log in logs.values()] == [True, True]
    assert sum("this line is printed once" in log for log in logs.values()) == 1


def test_the_first_page_of_the_site_has_the_script_of_the_guide() -> None:
    first, *_ = [code for kind, code in blocks(DOCS / "training" / "your-script.md") if kind == "python"]
    assert [code for kind, code in blocks(DOCS / "README.md") if kind == "python"] == [first]


def test_the_script_of_the_readme_trains(tmp_path: Path) -> None:
    (script,) = [code for kind, code in blocks(ROOT / "README.md") if kind == "python"]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert "Epoch 2/2" in by_hand(script.replace("epochs=30", "epochs=2"), directory=tmp_path)
