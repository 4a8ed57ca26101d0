# SPDX-License-Identifier: Apache-2.0
from io import StringIO

from rich.console import Console

from dtjob.local.display.view import LATEST, MANY_TASKS, live_view
from tests.unit.operator.builders import job
from tests.unit.operator.local.display.snapshots import report, snapshot


def shown(look, story=(), width=120, height=100, **options):
    """What the view prints on a screen of this size."""
    console = Console(file=StringIO(), width=width, height=height, color_system=None, legacy_windows=False)
    console.print(live_view(look, list(story), **options))
    return console.file.getvalue()


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


def test_the_view_shows_a_failure_and_the_latest_events():
    story = [f"event {number}" for number in range(20)]
    text = shown(snapshot(ended={"worker-1": -9}, status={"phase": "Restarting"}), story)
    assert "Restarting" in text
    assert "failed" in next(line for line in text.splitlines() if line.startswith("worker-1"))
    assert f"event {20 - LATEST}" in text
    assert f"event {19 - LATEST}\n" not in text


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
    story = [f"event {number}" for number in range(LATEST - 1)] + ["a long event " * 12]
    many = snapshot([report("chief-0", step=115, totalSteps=460)], digits=job(workers=20))
    text = shown(many, story, width=80, height=24)
    assert len(text.splitlines()) == 24
    assert all(part in text for part in ("step 115 of 460", "chief-0", "more", "event 0", "a long event"))
    assert "chief-0" in shown(many, story, width=80, height=5)


def test_a_narrow_screen_is_no_error():
    chief = report("chief-0", step=1, totalSteps=2, message="waiting for worker-1, which has not registered yet")
    assert shown(snapshot([chief]), ["a long line " * 20], width=30)
