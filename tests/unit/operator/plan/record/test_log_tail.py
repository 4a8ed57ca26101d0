# SPDX-License-Identifier: Apache-2.0
"""The last lines of a log as users read them."""

from dtjob.plan.record.failure import ProgramEnd, readable
from tests.unit.operator.builders import last_line

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
