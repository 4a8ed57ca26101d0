# SPDX-License-Identifier: Apache-2.0
"""`dtjob ui` with 1,000 jobs on a real API server."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_local_run import address_in
from tests.cluster.support.jobs import job

pytestmark = pytest.mark.timeout(900)

JOBS = 1000
NAMESPACES = ("vision", "speech", "ranking")
NAMES = ("resnet", "detector", "whisper", "tagger", "ranker", "embedder")
PHASES = ("Running", "Running", "Running", "Succeeded", "Succeeded", "Pending", "Failed", "Restarting", "Suspended")
REASONS = {
    "Running": "AllTasksRunning", "Succeeded": "TrainingFinished", "Pending": "PodsPending", "Failed": "RestartLimit",
    "Restarting": "TasksFailed", "Suspended": "BySpec",
}  # fmt: skip
MOST_SECONDS = 30.0
"""Until all rows are there. On a quiet machine it is 2 s."""
MOST_MEMORY = 400
"""MiB that `dtjob ui` may have."""


def status(number: int) -> dict[str, Any]:
    phase, total = PHASES[number % len(PHASES)], 1000 + 37 * number
    step = total if phase == "Succeeded" else number * 7919 % total
    progress = {
        "step": step, "totalSteps": total, "percentage": 100 * step // total, "stepsPerSecond": f"{number % 90 + 4.5}",
        "estimatedRemainingSeconds": total - step, "metrics": [{"name": "loss", "value": "0.25"}],
    }  # fmt: skip
    known = {} if phase == "Pending" else {"progress": progress, "goodput": {"percentage": 100 - number % 23}}
    return {"phase": phase, "reason": REASONS[phase], "restarts": {"total": number % 5 // 3}, **known}


@pytest.fixture(scope="module")
def jobs(api) -> list[tuple[str, str]]:
    """Made-up jobs with made-up statuses: no operator runs."""
    for name in NAMESPACES:
        api.create("namespaces", None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def make(number: int) -> tuple[str, str]:
        namespace, name = NAMESPACES[number % len(NAMESPACES)], f"{NAMES[number % len(NAMES)]}-{number:04}"
        api.create("dtjobs", namespace, job(name))
        api.patch("dtjobs", namespace, name, {"status": status(number)}, "status")
        return namespace, name

    with ThreadPoolExecutor(8) as pool:
        return [*pool.map(make, range(JOBS))]


@pytest.fixture
def ui(cluster, jobs, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    output = tmp_path / "output"
    command = [sys.executable, "-m", "dtjob", "ui", "-A", "--port", "0", "--kubeconfig", str(cluster.kubeconfig)]
    with output.open("wb") as printed, subprocess.Popen(command, stdout=printed, stderr=printed) as process:
        yield process, address_in(output)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_thousand_jobs_are_shown_filtered_and_followed(page, picture, api, jobs, ui) -> None:
    process, address = ui
    rows, sizes = page.locator("tbody tr"), list[int]()
    page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", 0))))
    began = time.monotonic()
    page.goto(address)
    page.get_by_text(f"{JOBS} of {JOBS} jobs").wait_for()
    shown = time.monotonic() - began
    assert rows.count() == JOBS
    page.set_viewport_size({"width": 1200, "height": 640})
    page.get_by_role("button", name="Job").click()

    began = time.monotonic()
    page.get_by_label("Namespace").select_option("vision")
    page.get_by_label("Phase").select_option("Failed")
    page.get_by_label("Name", exact=True).fill("resnet-0")
    found = sum(PHASES[number % len(PHASES)] == "Failed" and number % 6 == 0 for number in range(JOBS))
    page.get_by_text(f"{found} of {JOBS} jobs").wait_for()
    filtered = time.monotonic() - began
    assert rows.count() == found
    page.get_by_label("Phase").select_option("all")
    page.get_by_label("Name", exact=True).fill("")
    page.get_by_label("Namespace").select_option("all")

    namespace, name = jobs[0]
    began = time.monotonic()
    api.patch("dtjobs", namespace, name, {"status": {"phase": "Failed", "reason": "RestartLimit"}}, "status")
    page.locator("tr", has=page.get_by_role("link", name=name)).get_by_text("RestartLimit").wait_for()
    followed = time.monotonic() - began
    api.delete("dtjobs", *jobs[-1])
    page.get_by_text(f"{JOBS - 1} of {JOBS - 1} jobs").wait_for()

    memory = int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[0]) // 1024
    heap = page.evaluate("performance.memory.usedJSHeapSize") // 2**20
    print(
        f"\n{JOBS} jobs: shown after {shown:.1f} s, filtered after {filtered:.2f} s, a change after {followed:.2f} s; "
        f"dtjob ui has {memory} MiB, the page {heap} MiB and {sum(sizes) / 1000:.0f} kB of files"
    )
    assert shown < MOST_SECONDS
    assert memory < MOST_MEMORY
    picture(page, "page-list", full=False)


def test_a_job_of_a_cluster_says_where_its_curves_begin(page, jobs, ui) -> None:
    _, address = ui
    namespace, name = jobs[1]
    page.goto(f"{address}#/{namespace}/{name}")
    page.get_by_text(f"dtjob tensorboard {name} -n {namespace}").wait_for()
    page.get_by_text("nothing has gone wrong").wait_for()
    page.get_by_role("link", name="All jobs").click()
    page.get_by_text(re.compile(rf"\d+ of ({JOBS}|{JOBS - 1}) jobs")).wait_for()
