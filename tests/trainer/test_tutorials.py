# SPDX-License-Identifier: Apache-2.0
"""The whole scripts of docs/tutorials/, run as their pages say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_tutorials import PAGES, ROOT, blocks, is_whole

SCRIPTS = [(page, block) for page in PAGES for block in blocks(page) if is_whole(block)]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "script"), SCRIPTS, ids=[page.stem for page, _ in SCRIPTS])
def test_the_script_trains_in_a_group(tmp_path: Path, page: Path, script: str) -> None:
    shutil.copy(ROOT / "examples" / "digits.npz", tmp_path)
    (command,) = re.findall(r"^\.venv/bin/dtjob run (.*)$", page.read_text(), re.M)
    name, *arguments = command.split()
    if name.endswith(".yaml"):
        (manifest,) = re.findall(rf"^<!-- file: {name} -->\n```yaml\n(.*?)^```", page.read_text(), re.M | re.S)
        (tmp_path / name).write_text(manifest)
        (entrypoint,) = re.findall(r"entrypoint: ([\w.]+)", manifest)
        (tmp_path / entrypoint).write_text(script)
    else:
        (tmp_path / name).write_text(script)
    run = [sys.executable, "-m", "dtjob", "run", name, *arguments]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    logs = "".join(file.read_text() for file in (tmp_path / ".dtjob").rglob("*.log"))
    accuracies = [float(number) for number in re.findall(r"held-out accuracy .*?([01]\.\d{3})\D*$", logs, re.M)]
    assert max(accuracies) > 0.9
