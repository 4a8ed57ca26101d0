# SPDX-License-Identifier: Apache-2.0
"""A run on this machine for a page, from its files and what `dtjob run` sees."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dtjob.bad_input import BadInput
from dtjob.local.runs import open_run
from dtjob.ui.run_source import RunSource
from dtjob.ui.views import detail
from tests.unit.operator.builders import job
from tests.unit.operator.local.display.snapshots import report, snapshot
from tests.unit.operator.ui.event_files import scalar, write

KEY = ("default", "digits")


@pytest.fixture
def source(tmp_path: Path) -> Iterator[RunSource]:
    run = open_run(job(evaluator=True), tmp_path)
    yield RunSource(run)
    run.close()


def test_a_run_looks_like_a_job_of_a_cluster(source: RunSource) -> None:
    status = {"phase": "Running", "progress": {"step": 5, "totalSteps": 10, "percentage": 50}}
    source.observe(snapshot([report("chief-0", step=5, loss=0.5, stepsPerSecond=2.0)], status))
    view, found = source.view(KEY, None), source.hub.job(KEY)
    assert found is not None
    shown = detail(found, view.pods, view.reports)
    assert (shown["step"], shown["percentage"]) == (5, 50)
    assert shown["created"]
    assert shown["tasks"][0][:5] == ("chief-0", "training", "5", "2", "0.5")


def test_curves_are_collected_if_the_job_writes_no_events(source: RunSource) -> None:
    source.observe(snapshot([report("chief-0", step=5, loss=0.5, metrics={"accuracy": 0.75})]))
    source.observe(snapshot([report("chief-0", step=6, loss=0.25)]))
    view = source.view(KEY, None)
    found = {one["name"]: one["values"] for one in view.curves()}
    assert found == {"accuracy": [0.75], "loss": [0.5, 0.25]}
    assert view.note == "collected since this start of dtjob run"


def test_event_files_have_more_than_what_was_collected(source: RunSource) -> None:
    source.observe(snapshot([report("chief-0", step=5, loss=0.5)]))
    write(source.run.events / "train", 1, scalar(1, loss=4), scalar(5, loss=2))
    view = source.view(KEY, None)
    assert [*view.curves()] == [{"name": "loss", "steps": [1, 5], "values": [4.0, 2.0]}]
    assert view.note == f"from {source.run.events}"


def test_the_log_is_the_end_of_that_of_the_newest_attempt(source: RunSource) -> None:
    source.observe(snapshot())
    assert source.view(KEY, None).log() == []
    (source.run.logs / "digits-chief-0-0.log").write_text("old\n")
    (source.run.logs / "digits-chief-0-1.log").write_text("1/2\r2/2\n\x1b[32mgreen\x1b[0m\nnot yet whole")
    (source.run.logs / "digits-worker-1-0.log").write_text("".join(f"{number}\n" for number in range(100_000)))
    assert source.view(KEY, None).log() == ["2/2", "green", "not yet whole"]
    assert source.view(KEY, "worker-1").log() == [str(number) for number in range(99_800, 100_000)]
    with pytest.raises(BadInput, match="is no task"):
        source.view(KEY, "../../x")
