# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.metrics: a status, as Prometheus reads it."""

from dtjob_trainer.supervisor.metrics import STATES, exposition


def test_metrics_hold_what_is_known_and_nothing_else() -> None:
    status = {
        "state": "training", "step": 4, "restartsInPlace": 2, "metrics": {"accuracy": 0.5, "note": "x"},
        "checkpoint": {"step": 3, "time": "1970-01-01T00:01:00Z"},
    }  # fmt: skip
    _, text = exposition(status, {"job_name": "digits"})
    lines = text.decode().splitlines()
    assert 'dtjob_trainer_step{job_name="digits"} 4.0' in lines
    assert 'dtjob_trainer_metric{job_name="digits",name="accuracy"} 0.5' in lines
    assert 'dtjob_trainer_checkpoint_timestamp_seconds{job_name="digits"} 60.0' in lines
    assert 'dtjob_trainer_restarts_in_place_total{job_name="digits"} 2.0' in lines
    assert not any("loss" in line or "note" in line for line in lines)


def test_the_metric_of_the_tasks_state_is_one_and_the_others_are_zero() -> None:
    content_type, text = exposition({"state": "saving"}, {"task": "chief-0"})
    assert content_type.startswith("text/plain")
    states = dict(line.rsplit(" ", 1) for line in text.decode().splitlines() if line.startswith("dtjob_trainer_state{"))
    assert states == {
        f'dtjob_trainer_state{{state="{state}",task="chief-0"}}': "1.0" if state == "saving" else "0.0"
        for state in STATES
    }


def test_the_last_evaluation_has_a_metric_of_its_own() -> None:
    _, text = exposition({"evaluation": {"step": 9, "metrics": {"loss": 0.25}}}, {})
    assert 'dtjob_trainer_evaluation_metric{name="loss"} 0.25' in text.decode().splitlines()


def test_a_time_that_is_none_is_left_out() -> None:
    _, text = exposition({"checkpoint": {"step": 3, "time": "yesterday"}}, {})
    lines = text.decode().splitlines()
    assert "dtjob_trainer_checkpoint_step 3.0" in lines
    assert not any("timestamp_seconds" in line for line in lines)
