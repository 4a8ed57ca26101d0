# SPDX-License-Identifier: Apache-2.0
"""TensorBoard on what a run has written: scalars of training and evaluation, and a profile."""

import contextlib
import http.client
import importlib.util
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.support.local_runs import WAIT_SECONDS, LocalRun, manifest

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The event files of a run that has ended."""
    directory = tmp_path_factory.mktemp("run")
    profiled = {"everySteps": 10, "profile": {"firstStep": 100, "steps": 5}}
    file = manifest("digits.yaml", directory / "digits.yaml", 10, tensorBoard=profiled, image=None)
    with LocalRun(file, directory / "runs") as run:
        code, summary = run.end(300)
        assert code == 0, run.told
        assert f"tensorboard --logdir {summary['events']}" in run.told
    return str(summary["events"])


@pytest.fixture(scope="module")
def tensorboard(events: str) -> Iterator[str]:
    """The address of TensorBoard, as the command at the end of a run starts it."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", events, "--port", "0", "--host", "127.0.0.1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/", said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        yield found[0]
        process.terminate()


def answered(address: str, wanted: str) -> None:
    """Wait until TensorBoard has read the files. While it starts in a pod, connections end without an answer."""
    deadline, found = time.monotonic() + WAIT_SECONDS, ""
    while wanted not in found:
        assert time.monotonic() < deadline
        time.sleep(0.5)
        with contextlib.suppress(OSError, http.client.HTTPException):
            found = urllib.request.urlopen(address, timeout=60).read().decode()


@contextlib.contextmanager
def scalars(chromium, address: str, seconds: float = 120) -> Iterator[object]:
    """The page of TensorBoard, once the losses of training and evaluation are shown, each within so many `seconds`."""
    answered(f"{address}data/runs", "evaluator")
    page = chromium.new_page(viewport={"width": 1200, "height": 1000})
    page.set_default_timeout(seconds * 1000)
    page.goto(f"{address}#timeseries")
    page.get_by_role("combobox", name="Filter tags").fill("^(val_)?loss$")
    for tag in ("loss", "val_loss"):
        page.locator("card-view").get_by_text(tag, exact=True).first.wait_for()
    table = page.locator("card-view").first.locator("tb-data-table")
    for run in ("train", "evaluator"):  # both have losses of the same steps
        table.get_by_text(run, exact=True).wait_for()
    yield page
    page.close()


def test_scalars_of_training_and_evaluation_are_shown(chromium, picture, tensorboard: str) -> None:
    with scalars(chromium, tensorboard) as page:
        page.keyboard.press("Escape")  # closes the list of tags
        picture(page, "tensorboard", full=False)


@pytest.mark.skipif(importlib.util.find_spec("xprof") is None, reason="xprof is not installed, which has 330 MB")
def test_the_profile_of_a_few_steps_is_shown(chromium, picture, events: str, tensorboard: str) -> None:
    assert [*(Path(events) / "train" / "plugins" / "profile").rglob("*.xplane.pb")]
    page = chromium.new_page(viewport={"width": 1200, "height": 760})
    page.set_default_timeout(120_000)
    page.goto(f"{tensorboard}#profile")
    frame = page.frame_locator("iframe")
    for text in ("Sessions (1)", "Performance Summary"):
        frame.get_by_text(text).first.wait_for()
    picture(page, "tensorboard-profile", full=False)
    page.close()
