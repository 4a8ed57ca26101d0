# SPDX-License-Identifier: Apache-2.0
"""What `dtjob init` writes is valid, and overwrites nothing."""

import ast
from pathlib import Path

from dtjob.manifests.job_file import read_job


def test_the_first_job_is_valid_and_its_script_is_python(dtjob, tmp_path: Path) -> None:
    where = tmp_path / "demo"
    assert dtjob("init", where, "--name", "demo")[0] == 0
    assert dtjob("validate", where)[0] == 0
    assert read_job(where / "job.yaml").spec.tensor_board is not None
    ast.parse((where / "train.py").read_text())


def test_init_overwrites_no_file(dtjob, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("mine")
    code, _, err = dtjob("init", tmp_path)
    assert (code, err) == (2, f"dtjob: {tmp_path / 'train.py'}: is there already; choose another folder\n")
    assert (tmp_path / "train.py").read_text() == "mine"
    assert not (tmp_path / "job.yaml").exists()
