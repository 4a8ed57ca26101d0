# SPDX-License-Identifier: Apache-2.0
"""The whole scripts of docs/tutorials/, run as their pages say, with a kill where the page asks for one."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.own_ports import DTJOB
from tests.trainer.support.local_runs import LocalRun, Statuses
from tests.unit.page_commands import ROOT, marked
from tests.unit.test_page_programs import TUTORIALS, is_whole, programs

SCRIPTS = [(page, block) for page in TUTORIALS for block in programs(page) if is_whole(block)]
STEPS_PER_EPOCH = 23
"""1,437 images in batches of 64."""


class PageRun(LocalRun):
    """`dtjob run` with the words of a page, and nothing else."""

    def __init__(self, words: list[str], folder: Path) -> None:
        """`folder`: where the page's files are."""
        self._mark = f"{folder.resolve()}/.dtjob/".encode()
        command = [*DTJOB, "run", *words]
        self._output = folder / "output.txt"
        with self._output.open("w") as output:
            self.process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)

    def printed(self) -> str:
        """Wait for a good end; all that was printed."""
        code = self.process.wait(timeout=250)
        said = self._output.read_text()
        assert code == 0, said
        return said


def write_files(page: Path, script: str, folder: Path) -> list[str]:
    """Put the files of the page into `folder`, as it says. The words after its `dtjob run`."""
    shutil.copy(ROOT / "examples" / "digits.npz", folder)
    (command,) = re.findall(r"^\.venv/bin/dtjob run (.*)$", page.read_text(), re.M)
    words: list[str] = command.split()
    name = entrypoint = words[0]
    if name.endswith(".yaml"):
        manifest = marked(page, "file: ")[name]
        (folder / name).write_text(manifest)
        (entrypoint,) = re.findall(r"entrypoint: ([\w.]+)", manifest)
    (folder / entrypoint).write_text(script)
    return words


def trains_after_a_save(statuses: Statuses) -> bool:
    """Whether a checkpoint is on disk, and training is not at its end."""
    chief = statuses.get("worker-0", {})
    return chief.get("state") == "training" and ((chief.get("checkpoint") or {}).get("step") or 0) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("page", "script"), SCRIPTS, ids=[page.stem for page, _ in SCRIPTS])
def test_the_script_trains_in_a_group_and_goes_on_from_an_epochs_end_after_the_kill_of_the_page(
    tmp_path: Path, page: Path, script: str
) -> None:
    kills, saved = "`kill -9`" in page.read_text(), 0
    with PageRun(write_files(page, script, tmp_path), tmp_path) as run:
        if kills:
            before = run.wait_until(trains_after_a_save, "a checkpoint")
            saved = before["worker-0"]["checkpoint"]["step"]
            os.kill(before["worker-1"]["trainingPid"], signal.SIGKILL)
        said = run.printed()
    steps = [int(step) for step in re.findall(r"training goes on from the checkpoint at step (\d+);", said)]
    assert len(steps) == kills, said
    assert [step for step in steps if step < saved or step % STEPS_PER_EPOCH] == []
    logs = "".join(file.read_text() for file in (tmp_path / ".dtjob").rglob("*.log"))
    accuracies = [float(number) for number in re.findall(r"held-out accuracy .*?([01]\.\d{3})\D*$", logs, re.M)]
    assert max(accuracies) > 0.9


def test_two_tutorials_have_a_kill() -> None:
    assert len([page for page, _ in SCRIPTS if "`kill -9`" in page.read_text()]) == 2
