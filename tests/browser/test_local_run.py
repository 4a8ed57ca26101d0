# SPDX-License-Identifier: Apache-2.0
"""`dtjob run --ui`: real training on this machine, one of whose processes is killed."""

import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.support.local_runs import WAIT_SECONDS, LocalRun, manifest

pytestmark = pytest.mark.timeout(600)


def address_in(output: Path) -> str:
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := re.search(r"http://127\.0\.0\.1:\S+", output.read_text())):
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.05)
    return found[0]


def kill_the_program(run: LocalRun, role: str, index: str) -> None:
    """As the kernel does for want of memory: the training process, and not its supervisor."""
    for pid, environment in run.processes().items():
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if (environment["DTJOB_ROLE"], environment["DTJOB_INDEX"]) == (role, index) and b"dtjob_trainer.run" in command:
            os.kill(pid, signal.SIGKILL)
            return
    raise AssertionError("there is no such process")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The directory of the run, which the page names. In a picture its name is short."""
    if not os.environ.get("DTJOB_PICTURES"):
        yield tmp_path
        return
    plain = Path(tempfile.gettempdir(), "digits")
    plain.mkdir()
    yield plain
    shutil.rmtree(plain)


def test_a_run_is_shown_while_it_trains_and_after_its_end(page, picture, home: Path) -> None:
    file = manifest("digits.yaml", home / "digits.yaml", 40, tensorBoard={"everySteps": 10}, image=None)
    output = home / "output"
    output.touch()
    with LocalRun(file, home / ".dtjob", "--ui", output=output) as run:
        address = address_in(output)
        run.wait_for_step(120)
        kill_the_program(run, "worker", "1")
        page.goto(address)
        page.get_by_role("link", name="digits").click()
        page.get_by_role("listitem").get_by_text("was killed (SIGKILL)").wait_for()
        for curve in ("loss", "accuracy", "steps_per_second"):
            page.get_by_role("img", name=f"curve of {curve}").locator("canvas").wait_for()
        run.wait_for_step(400)
        page.get_by_text("evaluator 0").first.wait_for()
        assert "Epoch" in page.get_by_role("log").inner_text()
        tasks = page.get_by_role("region", name="Tasks").locator("td:first-child")
        assert tasks.all_text_contents() == [
            "chief-0", "worker-0", "worker-1", "evaluator-0",
        ]  # fmt: skip
        picture(page, "page-job")
        page.get_by_text("Manifest and status").click()
        page.get_by_text("strategy: MultiWorkerMirrored").wait_for()
        page.get_by_role("combobox", name="Task").select_option("worker-1")
        page.locator(".badge", has_text="Succeeded").wait_for()
        page.reload()
        page.locator(".message", has_text="training has ended").wait_for()
        assert page.get_by_role("listitem").count() == 1
        page.goto("about:blank")  # a page whose server has ended complains
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(60) == 0
