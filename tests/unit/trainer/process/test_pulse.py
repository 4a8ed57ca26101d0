# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.pulse: what lasts is told, and what stands still rightly is told at once."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.contract.doing import CALLBACKS, DATA, SAVING, STEPPING
from dtjob_trainer.process import pulse
from dtjob_trainer.process.progress import INTERVAL_SECONDS, Progress
from dtjob_trainer.process.pulse import Pulse


class Told(Progress):
    """Keeps every report."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[dict[str, Any]] = []

    def report(self, **keys: Any) -> None:
        self.reports.append(keys)
        super().report(**keys)


class Over(Exception):
    """Ends the thread's loop."""


def beats(monkeypatch: pytest.MonkeyPatch, one: Pulse, *between: Any) -> None:
    """Look so often, with these calls before each look."""
    calls = iter(between)

    def sleep(_: float) -> None:
        call = next(calls, None)
        if call is None:
            raise Over
        call()

    monkeypatch.setattr(pulse.time, "sleep", sleep)
    with pytest.raises(Over):
        one._beat()


def begun() -> tuple[Pulse, Told]:
    progress = Told()
    one = Pulse(progress)
    one._begun = True
    return one, progress


def nothing() -> None:
    pass


def test_only_a_lasting_activity_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    one, progress = begun()
    beats(monkeypatch, one, lambda: one.enter("data"), lambda: one.enter("step"), lambda: one.enter("data"))
    assert progress.reports == []
    beats(monkeypatch, one, lambda: one.enter("data"), nothing, nothing)
    assert progress.reports == [{"doing": "data"}]


def test_steps_that_were_done_without_a_report_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    one, progress = begun()
    progress.report(step=7)
    one.steps_done = lambda: 9
    beats(monkeypatch, one, nothing)
    one.steps_done = lambda: 8
    beats(monkeypatch, one, nothing)
    assert progress.reports == [{"step": 7}, {"step": 9}]


def test_a_delayed_step_is_reported_after_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    one, progress = begun()
    progress.report(state="training")
    progress.update(step=1)
    progress.update(step=2)
    assert progress.status["step"] == 1
    progress._last_written -= 2 * INTERVAL_SECONDS
    beats(monkeypatch, one, nothing)
    assert progress.status["step"] == 2


def test_validation_and_saving_are_reported_at_once_by_the_calling_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    one, progress = begun()
    one.enter("callbacks")
    with one.resting("validating"):
        beats(monkeypatch, one, nothing, nothing)
        assert progress.reports == [{"doing": "validating"}]
    assert progress.reports[1:] == [{"doing": "callbacks"}]
    with pytest.raises(KeyError), one.resting("saving"):
        raise KeyError
    assert progress.reports[-1] == {"doing": "callbacks"}


def test_nothing_is_reported_if_the_supervisor_does_not_ask() -> None:
    progress = Told()
    with Pulse(progress).resting("saving"):
        pass
    assert progress.reports == []


def within(tmp_path: Path, file: str, function: Callable[[], None]) -> Callable[[], None]:
    """A function of this file that calls `function`."""
    called: dict[str, Any] = {}
    exec(compile("def call(function):\n    function()\n", str(tmp_path / file), "exec"), called)
    return lambda: called["call"](function)


def test_python_that_a_graph_calls_is_found_in_any_thread(tmp_path: Path) -> None:
    """By the file through which TensorFlow calls it."""
    gate, inside = threading.Event(), threading.Event()

    def data() -> None:
        inside.set()
        gate.wait()

    thread = threading.Thread(target=within(tmp_path, "tensorflow/python/ops/script_ops.py", data))
    assert pulse.where("step") == "step"
    thread.start()
    inside.wait()
    assert (pulse.where("step"), pulse.where("callbacks")) == ("data", "callbacks")
    gate.set()
    thread.join()
    assert pulse.where("step") == "step"


@pytest.mark.parametrize("file", ["dtjob_trainer/strategies/collective.py", "tensorflow/python/eager/executor.py"])
def test_a_wait_for_other_tasks_does_not_count_as_reading_data(tmp_path: Path, file: str) -> None:
    """Tasks agree on batches of which nobody knows how many there are; and before a ParameterServer chief reads one,
    TensorFlow may wait for the steps that others have yet to do."""
    seen: list[str] = []
    within(tmp_path, file, lambda: seen.append(pulse.where("data")))()
    assert (seen, pulse.where("data")) == (["step"], "data")


def test_time_of_saves_validations_and_callbacks_is_not_that_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(pulse.time, "monotonic", lambda: now)
    one = Pulse(Progress())
    for doing, seconds in ((DATA, 1.0), (STEPPING, 2.0), (CALLBACKS, 4.0), (STEPPING, 8.0)):
        one.enter(doing)
        now += seconds
    with one.resting(SAVING):
        now += 16.0
    now += 32.0
    assert one.stepping_seconds() == one.stepping_seconds() == 1.0 + 2.0 + 8.0 + 32.0
