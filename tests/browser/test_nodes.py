# SPDX-License-Identifier: Apache-2.0
"""`dtjob ui` and `dtjob tensorboard` on a job that trains on real nodes (Linux and root), in a chromium."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.test_local_run import address_in
from tests.browser.test_tensorboard import scalars
from tests.e2e.conftest import api, cluster  # noqa: F401 (fixtures)
from tests.e2e.jobs.conftest import chart_values, new_job, operator, release, trainer_image  # noqa: F401 (fixtures)
from tests.e2e.jobs.support.training_job import digits

pytestmark = pytest.mark.timeout(1800)
Command = Callable[..., "contextlib.AbstractContextManager[str]"]


@pytest.fixture
def command(cluster, namespace: str, tmp_path: Path) -> Command:  # noqa: F811 (a fixture)
    """Runs a command of dtjob that serves a page, and gives its address. Ctrl-C ends the command."""

    @contextlib.contextmanager
    def run(*words: str) -> Iterator[str]:
        output = tmp_path / words[0]
        where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig), "--port", "0")
        with (
            output.open("wb") as printed,
            subprocess.Popen(
                [sys.executable, "-m", "dtjob", *words, *where],
                stdout=printed,
                stderr=printed,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            ) as process,
        ):
            try:
                yield address_in(output)
            finally:
                process.send_signal(signal.SIGINT)

    return run


def test_a_job_on_nodes_is_shown_while_it_trains_and_after_its_end(
    chromium,
    page,
    command: Command,
    new_job,  # noqa: F811 (fixtures)
    namespace: str,
    trainer_image: str,  # noqa: F811
    cluster,  # noqa: F811
    tmp_path: Path,
) -> None:
    board = {"everySteps": 10, "profile": {"firstStep": 50, "steps": 5}}
    manifest = digits(trainer_image, epochs=60, tensorBoard=board)
    manifest["spec"]["replicaSpecs"]["evaluator"] = {}
    new_job(manifest, shared=True)
    page.set_default_timeout(300_000)
    with command("ui") as address:
        page.goto(address)
        page.get_by_role("link", name="digits").click()
        page.locator(".badge", has_text="Running").wait_for()
        for curve in ("loss", "accuracy", "steps_per_second"):
            page.get_by_role("img", name=f"curve of {curve}").locator("canvas").wait_for()
        tasks = page.get_by_role("region", name="Tasks").locator("td:first-child")
        assert tasks.all_text_contents() == [
            "chief-0", "worker-0", "worker-1", "evaluator-0",
        ]  # fmt: skip
        with command("tensorboard", "digits") as tensorboard, scalars(chromium, tensorboard, 300):
            pass
        page.locator(".badge", has_text="Succeeded").wait_for(timeout=900_000)
        page.goto("about:blank")
    with command("tensorboard", "digits") as tensorboard, scalars(chromium, tensorboard, 300):
        pass
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    fetch = [sys.executable, "-m", "dtjob", "fetch", "digits", "events", "--output", str(tmp_path), *where]
    subprocess.run(fetch, check=True)
    assert [*(tmp_path / "events" / "train" / "plugins" / "profile").rglob("*.xplane.pb")]
