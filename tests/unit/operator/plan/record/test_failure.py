# SPDX-License-Identifier: Apache-2.0
"""The record of a failure: whose doing it counts as, its log as users read it, and how the status keeps it."""

import json

import pytest

from dtjob.plan.record.failure import LONGEST, Cause, Failure, ProgramEnd, readable
from dtjob_trainer.contract import log_line
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, last_line

FAILURE = Failure(
    task=builders.task("worker-1"),
    cause=Cause.ERROR,
    time=NOW,
    pod="digits-worker-1-0",
    node="node-1",
    message="failed (exit code 1)",
    log_tail="ValueError: bad shape",
    exit_code=1,
)


def test_only_the_jobs_own_doing_is_charged() -> None:
    assert [cause for cause in Cause if cause.charged] == [
        Cause.OOM_KILLED,
        Cause.STORAGE_LIMIT_EXCEEDED,
        Cause.SIGNAL,
        Cause.STALLED,
        Cause.ERROR,
    ]


def test_an_unknown_cause_is_read_as_none() -> None:
    assert [Cause.known(cause.value) for cause in Cause] == list(Cause)
    assert Cause.known("NodeMelted") is None


def test_the_last_failure_in_the_status_has_its_fields() -> None:
    assert FAILURE.in_status().to_json() == {
        "task": "worker-1",
        "pod": "digits-worker-1-0",
        "node": "node-1",
        "cause": "Error",
        "message": "failed (exit code 1)",
        "logTail": "ValueError: bad shape",
        "time": "2026-11-21T10:00:00Z",
        "exitCode": 1,
    }


def test_a_failures_unknown_fields_are_left_out_of_the_status() -> None:
    gone = Failure(builders.task("chief-0"), Cause.DELETED, NOW, "digits-chief-0-0", "", "was deleted", "")
    assert gone.in_status().to_json().keys() == {"task", "pod", "cause", "message", "time"}
    assert gone.sentence() == "chief-0 was deleted"


@pytest.mark.parametrize(
    ("told", "end"),
    [
        ({"exception": "KeyError: 'a b'"}, (False, "KeyError: 'a b'", False)),
        ({"exception": 'ValueError: say "no" \\ = x', "stepped": True}, (True, 'ValueError: say "no" \\ = x', False)),
        ({"exception": "OSError: ü…", "stepped": None, "transient": True}, (None, "OSError: ü…", True)),
        ({"code": 3}, (False, "", False)),
    ],
)
def test_the_last_line_is_read(told, end):
    message = last_line(**told)
    found = ProgramEnd.of(message)
    assert (found.stepped, found.exception, found.transient) == end
    assert found.said == message


@pytest.mark.parametrize(
    "message",
    [
        "",
        "step 41\nstep 42",
        'level=error exitCode=1 stepped=false exception="not ours: no time"',
        'time=2026 level=error message="of a supervisor before 0.2: ending with 1"',
        "time=2026 level=error exitCode=many stepped=false",
        "[1, 2]",
        "{",
        '{"stepped": true, "task": "chief-0"}',
        '{"of": "the program itself"}',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_other_messages_tell_nothing(message):
    assert ProgramEnd.of(message) == ProgramEnd(said=message)


def test_the_message_of_a_supervisor_killed_with_its_container_is_read():
    message = json.dumps({"task": "chief-0", "attempt": 0, "stepped": False})
    assert ProgramEnd.of(message) == ProgramEnd(stepped=False)


def test_a_line_that_is_not_as_it_should_be_is_read_as_far_as_it_goes():
    found = ProgramEnd.of('time=T level=error exitCode=1 stepped="false" transient=1 exception="\\ud800"')
    assert (found.stepped, found.transient, found.exception) == (None, False, "?")
    assert len(ProgramEnd.of(last_line(exception="x" * 2000)).exception) == LONGEST


@pytest.mark.parametrize("step", ["99999999999999999999", str(-(2**63)), "true", "1.5"])
@pytest.mark.parametrize("stepped", ["true", "false"])
def test_a_step_that_no_status_holds_is_not_known(stepped: str, step: str) -> None:
    """The API server would refuse each status with it, so that the job would neither restart nor fail."""
    found = ProgramEnd.of(f"time=T level=error exitCode=1 stepped={stepped} step={step}")
    assert (found.step, found.restored) == (None, None)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (
            'NotFoundError: no OpKernel with these attrs: [config="", is_init=false, closes=2]. s…',
            'NotFoundError: no OpKernel with these attrs: [closes=2, is_init=false, config=""]. s…',
            True,
        ),
        ("ValueError: unknown {'b', 'a'} of (x, [c, d])", "ValueError: unknown {'a', 'b'} of (x, [d, c])", True),
        ("ValueError: unknown {'b', 'a'}", "ValueError: unknown {'b', 'c'}", False),
        ("OSError: [pid 17] at 0x7f3a", "OSError: [pid 4711] at 0xdeadbeef", True),
        ("FileNotFoundError: '/tmp/tmpab12_x9z/a'", "FileNotFoundError: '/tmp/tmpqq77_11a/a'", True),
        ("ValueError: run 3fa85f64-5717 at 10:00:01.5", "ValueError: run 0badcafe-1234 at 11:12:13.25", True),
        ("ModuleNotFoundError: No module named 'a'", "ModuleNotFoundError: No module named 'b'", False),
        ("ValueError: no", "TypeError: no", False),
        ("", "", True),
    ],
)
def test_exceptions_that_differ_only_in_run_specific_parts_are_alike(one, other, alike):
    assert (ProgramEnd(exception=one).alike == ProgramEnd(exception=other).alike) is alike


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('step=120 exitCode=1 stepped=true exception="ValueError: no"', "failed after step 120: ValueError: no"),
        ('step=120 exitCode=1 stepped=false exception="ValueError: no"', "failed: ValueError: no"),  # restored
        ("exitCode=1 stepped=true", "failed"),
        ("step=7 exitCode=3 stepped=true", "failed after step 7"),
    ],
)
def test_the_words_of_an_end_have_its_step_and_its_exception(line, words):
    assert ProgramEnd.of(f"time=T level=error task=chief-0 {line}").words == words


@pytest.mark.parametrize(
    ("told", "written"),
    [
        ("A: b: c", {"type": "A", "message": "b: c"}),
        ("AssertionError", {"type": "AssertionError"}),
        (": no class", None),
        ("", None),
    ],
)
def test_the_exception_as_the_status_has_it(told: str, written: dict[str, str] | None):
    end = ProgramEnd(exception=told)
    failure = Failure(builders.task("chief-0"), Cause.ERROR, NOW, "digits-chief-0-0", "", "failed", "", end=end)
    assert failure.in_status().to_json().get("exception") == written


@pytest.mark.parametrize("chosen", ["logfmt", "json"])
def test_the_trainers_last_line_is_read_in_both_forms(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two packages never import each other but in tests."""
    monkeypatch.setenv(log_line.FORMAT, chosen)
    facts = {"exitCode": 1, "stepped": False, "exception": 'A: "\n\\', "permanent": True, "transient": True}
    last = log_line.line("failed", time="2026-11-21T10:00:00.000Z", level="error", task="chief-0", facts=facts)
    for text in (last, f"Traceback\n{last}\nwritten a little later"):
        found = ProgramEnd.of(text)
        assert (found.stepped, found.exception, found.permanent, found.transient) == (False, 'A: " \\', True, True)


KERAS = """\
Traceback (most recent call last):
  File "<frozen runpy>", line 88, in _run_code
  File "/app/train.py", line 30, in <module>
    model.fit(x, y, callbacks=[Told()])
  File "/usr/lib/python3.11/site-packages/dtjob_trainer/loops/fit_loop.py", line 250, in _end_epoch
    self._callbacks.on_epoch_end(epoch, logs)
                    ^^^^^^^^^^^^^^^^^^^^^^^^
  File "/usr/lib/python3.11/site-packages/keras/src/callbacks/callback_list.py", line 171, in on_epoch_end
    callback.on_epoch_end(epoch, logs)

  File "/app/train.py", line 8, in on_epoch_end
    print(logs["los"])
          ~~~~^^^^^^^
KeyError: 'los'"""


def test_the_log_has_the_frames_of_the_program_only() -> None:
    assert readable(KERAS.splitlines()) == (
        "Traceback (most recent call last):\n"
        '  File "/app/train.py", line 30, in <module>\n'
        "    model.fit(x, y, callbacks=[Told()])\n"
        '  File "/app/train.py", line 8, in on_epoch_end\n'
        '    print(logs["los"])\n'
        "          ~~~~^^^^^^^\n"
        "KeyError: 'los'"
    )


def test_a_folder_of_the_user_may_be_called_python() -> None:
    assert 'File "/home/me/lib/python/train.py"' in readable(
        ['  File "/home/me/lib/python/train.py", line 1, in <module>']
    )


def test_the_exception_after_a_frame_of_a_package_stays() -> None:
    lines = KERAS.splitlines()[:9]
    assert readable([*lines, "KeyError: 'los'", "  two spaces more"]).endswith("KeyError: 'los'\n  two spaces more")


def test_the_last_line_of_the_supervisor_is_in_other_fields() -> None:
    line = last_line(1, "KeyError: 'los'")
    end = ProgramEnd.of(f"{line.splitlines()[1]}\nmore words\n{line.splitlines()[-1]}")
    assert (end.exception, end.log_tail) == ("KeyError: 'los'", "KeyError: 'los'\nmore words")
