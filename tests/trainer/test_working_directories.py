# SPDX-License-Identifier: Apache-2.0
"""Tasks of a local run have working directories of their own: a script that makes a directory works in each of them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.support.local_runs import ROOT, LocalRun
from tests.trainer.test_programs import SECONDS, manifest

PROGRAM = """
import os
import keras
import numpy as np
os.mkdir("training")
assert np.loadtxt("../data/rows.csv", delimiter=",").shape == (4,)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((8, 4)), np.ones((8, 1)), batch_size=4, verbose=0)
with open("training/names.txt", "a") as file:
    file.write("once\\n")
model.save("training/model.keras")
with open("training/names.txt") as file:
    assert file.read() == "once\\n"
print("wrote", os.listdir("training"))
"""


def test_a_script_that_makes_a_directory_runs_in_every_task(tmp_path: Path) -> None:
    scripts = tmp_path / "project" / "scripts"
    scripts.mkdir(parents=True)
    (tmp_path / "project" / "data").mkdir()
    (tmp_path / "project" / "data" / "rows.csv").write_text("1,2,3,4")
    (scripts / "script.py").write_text(PROGRAM)
    file = manifest("script.py", "MultiWorkerMirrored", tmp_path / "job.yaml", program={"entrypoint": "script.py"})
    ran = subprocess.run(
        [sys.executable, "-m", "dtjob", "run", str(file), "--work-dir", str(tmp_path / "work")],
        cwd=scripts,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "operator"), str(ROOT / "trainer_image")])},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {path.name for path in (scripts / "training").iterdir()} == {"names.txt", "model.keras"}
    logs = list((tmp_path / "work").glob("job/run-*/logs/job-*.log"))
    assert sum("wrote" in log.read_text() for log in logs) == 2


AGAIN = """
import os
import keras
import numpy as np
os.mkdir("training")
os.makedirs({absolute!r})
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((400, 4)), np.ones((400, 1)), batch_size=4, epochs=3, verbose=0)
try:
    os.mkdir("training")
except FileExistsError:
    print("is there")
"""


@pytest.mark.slow
def test_a_script_that_is_killed_makes_its_directories_again(tmp_path: Path) -> None:
    """Tasks share the absolute one."""
    (tmp_path / "script.py").write_text(AGAIN.format(absolute=str(tmp_path / "shared" / "files")))
    spec = {
        "program": {"entrypoint": "script.py"},
        "checkpoint": {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 10},
        "failurePolicy": {"maxRestartsWithoutProgress": 5, "backoff": {"initialSeconds": 0}},
    }
    file = manifest("script.py", "MultiWorkerMirrored", tmp_path / "job.yaml", **spec)
    with LocalRun(file, tmp_path / "work", directory=tmp_path) as run:
        for task, step in (("chief-0", 50), ("worker-0", 150)):
            os.kill(run.wait_for_step(step, task)[task]["trainingPid"], signal.SIGKILL)
        code, summary = run.end(SECONDS)
    assert code == 0, (summary, run.told)
    assert summary["restarts"]["byCause"] == {"Signal": 2}
    logs = list((tmp_path / "work").glob("job/run-*/logs/job-*.log"))
    assert sum("is there" in log.read_text() for log in logs) == 2
