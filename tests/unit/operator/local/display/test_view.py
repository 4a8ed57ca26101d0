# SPDX-License-Identifier: Apache-2.0
from io import StringIO

from rich.console import Console

from dtjob.local.display.log_lines import Shown
from dtjob.local.display.program_output import OfTask
from dtjob.local.display.view import MANY_TASKS, above, live_view, program_line
from tests.unit.operator.builders import job
from tests.unit.operator.local.display.snapshots import report, snapshot


def printed(renderable, width=120, height=100, **options):
    """What is printed on a screen of this size."""
    console = Console(file=StringIO(), width=width, height=height, color_system=None, legacy_windows=False)
    console.print(renderable, **options)
    return console.file.getvalue()


def shown(look, unfinished="", width=120, height=100, **options):
    """What the view prints on a screen of this size."""
    return printed(live_view(look, unfinished, **options), width, height)


def test_a_run_that_just_began_has_a_line_for_each_task():
    text = shown(snapshot())
    for task in ("chief-0", "worker-0", "worker-1", "evaluator-0"):
        assert task in text
    assert "no step yet" in text


def test_the_view_shows_tasks_progress_and_the_last_evaluation():
    evaluation = {"step": 100, "metrics": {"accuracy": 0.9532}}
    text = shown(
        snapshot(
            [
                report("chief-0", step=115, totalSteps=460, loss=0.3, stepsPerSecond=41.0, etaSeconds=8.0),
                report("evaluator-0", "evaluating", evaluation=evaluation),
            ]
        )
    )
    chief = next(line for line in text.splitlines() if line.startswith("chief-0"))
    assert all(part in chief for part in ("training", "100", "20", "115", "0.3000", "41"))
    assert "step 115 of 460 (25%)" in text
    assert "8s left" in text
    assert "evaluator: accuracy 0.9532 at step 100" in text


def test_the_view_shows_a_failure():
    text = shown(snapshot(ended={"worker-1": -9}, status={"phase": "Restarting"}))
    assert "Restarting" in text
    assert "failed" in next(line for line in text.splitlines() if line.startswith("worker-1"))


def test_the_wait_at_the_start_is_explained():
    assert "importing TensorFlow" in shown(snapshot(status={"phase": "Pending"}))
    assert "Starting" in shown(snapshot([report("chief-0", "waiting")], status={"phase": "Pending"}))


def test_a_loop_of_the_program_is_not_without_steps():
    text = shown(snapshot([report("chief-0", "starting", trainsItself=True)]))
    assert "a loop of its own" in text
    assert "no step yet" not in text


def test_a_line_that_the_program_has_not_ended_is_the_first():
    text = shown(snapshot(), "\x1b[1m17/52\x1b[0m " + "━" * 100, width=80)
    assert text.splitlines()[0].startswith("17/52 ━")
    assert text.splitlines()[1].strip() == ""


def test_lines_of_the_program_and_of_dtjob_come_above():
    line = OfTask("worker-1", Shown("\x1b[31mloss\x1b[0m 0.5", ours=False))
    assert printed(program_line(line, False, 1.0)) == "loss 0.5\n"
    assert printed(program_line(line, True, 1.0)) == "worker-1     | loss 0.5\n"
    warning = OfTask("chief-0", Shown("no volume", ours=True))
    assert printed(program_line(warning, False, 61.25)) == printed(above(61.25, "no volume")) == "[61.2 s] no volume\n"


def test_stopping_says_what_ctrl_c_does_now():
    assert "Ctrl-C again kills" in shown(snapshot(), stopping=True)
    ended = dict.fromkeys(("chief-0", "worker-0", "worker-1", "evaluator-0"), 143)
    text = shown(snapshot(ended=ended), stopping=True)
    assert "Stopped" in text
    assert text.count("stopped") == 4


def test_many_tasks_are_counted():
    text = shown(snapshot(digits=job(workers=100)))
    assert f"… {102 - MANY_TASKS} more" in text


def test_a_terminal_of_24_lines_shows_how_it_goes_whatever_the_number_of_tasks():
    many = snapshot([report("chief-0", step=115, totalSteps=460)], digits=job(workers=20))
    text = shown(many, "a bar " * 20, width=80, height=24)
    assert len(text.splitlines()) == 24
    assert all(part in text for part in ("step 115 of 460", "chief-0", "more", "a bar"))
    assert "chief-0" in shown(many, width=80, height=5)


def test_no_line_of_the_view_wraps_at_80_columns():
    chief = report(
        "chief-0", step=123456, totalSteps=460000, loss=12345.678, stepsPerSecond=1041.0, etaSeconds=86000.0,
        restartsInPlace=3, message="waiting for worker-1, which has not registered yet",
    )  # fmt: skip
    lines = shown(snapshot([chief, report("evaluator-0", "evaluating")]), width=80).splitlines()
    assert len(lines) == 8  # an empty one, the header, five of the table, the bar
    assert "left" in lines[-1]
    assert shown(snapshot([chief]), "a long line " * 20, width=30)
