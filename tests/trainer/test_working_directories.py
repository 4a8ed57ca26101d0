# SPDX-License-Identifier: Apache-2.0
"""Tasks of a local run have working directories of their own: a script makes directories and files in each of them."""

import os
import signal
from pathlib import Path

import pytest

from tests.trainer.support.local_runs import LocalRun
from tests.trainer.test_programs import manifest

PROGRAM = """
import os
import time
import keras
import numpy as np

class Hold(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        while epoch == 2 and not os.path.exists(GATE):
            time.sleep(0.05)

assert np.loadtxt("../data/rows.csv", delimiter=",").shape == (4,)
os.makedirs("training", exist_ok=True)
best = "training/best.keras"
if os.path.exists(best):
    model = keras.models.load_model(best)
    print("goes on from its file")
else:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
saving = keras.callbacks.ModelCheckpoint(best, monitor="loss", save_best_only=True)
model.fit(np.ones((8, 4)), np.ones((8, 1)), batch_size=4, epochs=4, verbose=0, callbacks=[saving, Hold()])
keras.models.load_model(best)
with open("training/names.txt", "a") as file:
    file.write("once\\n")
model.save("training/model.keras")
with open("training/names.txt") as file:
    assert file.read() == "once\\n"
print("wrote", sorted(os.listdir("training")))
"""


@pytest.mark.parametrize("killed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_script_that_writes_and_reads_files_runs_in_every_task(tmp_path: Path, killed: bool) -> None:
    """The file of its ModelCheckpoint is there after fit, and after a restart: all tasks load it, or none does."""
    scripts, data = tmp_path / "project" / "scripts", tmp_path / "project" / "data"
    for directory in (scripts, data):
        directory.mkdir(parents=True)
    (data / "rows.csv").write_text("1,2,3,4")
    script = scripts / "script.py"
    gate = tmp_path / "gate"
    script.write_text(f"GATE = {str(gate)!r}\n{PROGRAM}")
    policy = {"maxRestartsWithoutProgress": 2, "backoff": {"initialSeconds": 0}}
    file = manifest(str(script), "MultiWorkerMirrored", tmp_path / "job.yaml", failurePolicy=policy)
    with LocalRun(file, scripts / ".dtjob", directory=scripts) as run:  # where it is by default
        if killed:
            statuses = run.wait_until(lambda now: now.get("chief-0", {}).get("epoch") == 2, "the held epoch")
            os.kill(statuses["worker-0"]["trainingPid"], signal.SIGKILL)
            run.wait_until(lambda now: now.get("chief-0", {}).get("restartsInPlace"), "a restart")
        gate.touch()
        code, result = run.end()
    assert code == 0, (result, run.told)
    names = ["best.keras", "model.keras", "names.txt"]
    assert sorted(path.name for path in (scripts / "training").iterdir()) == names
    logs = [log.read_text() for log in (scripts / ".dtjob").glob("job/run-*/logs/job-*.log")]
    assert [f"wrote {names}" in log for log in logs] == [True, True]
    assert ["goes on from its file" in log for log in logs] == [killed, killed]
