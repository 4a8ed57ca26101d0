# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.devices: calls that come too late in a job."""

import pytest

pytest.importorskip("wrapt")
devices = pytest.importorskip("dtjob_trainer.program.devices")


def test_a_call_that_comes_too_late_is_logged_and_other_errors_are_raised() -> None:
    told: list[str] = []
    errors = [RuntimeError("Physical devices cannot be modified after being initialized"), RuntimeError("no"), None]

    def original(number: int) -> None:
        if error := errors[number]:
            raise error

    call = devices._left(original, "words", told.append)
    call(0)
    assert told == ["words"]
    with pytest.raises(RuntimeError, match="no"):
        call(1)
    call(2)
    assert told == ["words"]


def test_each_of_the_calls_is_there() -> None:
    tf = pytest.importorskip("tensorflow")
    for name in devices.INSTEAD:
        home = tf.config
        for part in name.split("."):
            home = getattr(home, part)
        assert callable(home)
