# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.devices: calls that come too late in a job, and options that name the process itself."""

from typing import Any

import pytest

from dtjob_trainer.contract.task import Task

pytest.importorskip("wrapt")
devices = pytest.importorskip("dtjob_trainer.program.devices")


def test_a_call_that_comes_too_late_is_logged_and_other_errors_are_raised() -> None:
    told: list[str] = []
    errors = [RuntimeError("Physical devices cannot be modified after being initialized"), RuntimeError("no"), None]

    def original(number: int) -> None:
        if error := errors[number]:
            raise error

    devices.called(told.append, "words", original, 0)
    assert told == ["words"]
    with pytest.raises(RuntimeError, match="no"):
        devices.called(told.append, "words", original, 1)
    devices.called(told.append, "words", original, 2)
    assert told == ["words"]


def task(strategy: str, role: str) -> Task:
    return Task(name="job", namespace="default", uid="1", role=role, index=0, strategy=strategy)


@pytest.mark.parametrize(
    ("of", "here"),
    [(task("MultiWorkerMirrored", "worker"), None), (task("ParameterServer", "chief"), "/job:chief/task:0")],
    ids=["MultiWorkerMirrored", "ParameterServer"],
)
@pytest.mark.parametrize("name", ["saved_model.SaveOptions", "saved_model.LoadOptions", "train.CheckpointOptions"])
def test_options_for_the_process_itself_name_it_as_tensorflow_does(
    monkeypatch: pytest.MonkeyPatch, name: str, of: Task, here: str | None
) -> None:
    home, last = name.split(".")
    tf = pytest.importorskip("tensorflow")
    kind: Any = getattr(getattr(tf, home), last)
    for each in (tf.saved_model.SaveOptions, tf.saved_model.LoadOptions, tf.train.CheckpointOptions):
        monkeypatch.setattr(each, "__init__", each.__init__)
    devices.stay_here(of)
    assert kind(experimental_io_device="/job:localhost").experimental_io_device == here
    assert kind(experimental_io_device="/job:worker/task:0").experimental_io_device == "/job:worker/task:0"
    assert kind().experimental_io_device is None
