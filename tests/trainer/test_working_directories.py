# SPDX-License-Identifier: Apache-2.0
"""Tasks of a local run have working directories of their own: a script that makes a directory works in each of them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.trainer.support.local_runs import ROOT
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
