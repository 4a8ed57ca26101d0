# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.runtime: what a program finds itself in, in a job and by hand."""

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.process.runtime import Runtime
from tests.unit.trainer.contract.test_log_line import parsed

CLUSTER = {"chief": ("a:1",), "worker": ("b:1",)}


def of(role: str, strategy: str = "MultiWorkerMirrored") -> Runtime:
    return Runtime(Task("job", "default", "uid", role, 0, strategy=strategy, cluster=CLUSTER))


def test_only_the_chief_and_the_evaluator_print(capsys: pytest.CaptureFixture[str]) -> None:
    for role in ("chief", "worker", "evaluator"):
        of(role).log("epoch 1/3", step=5, values={"loss": 0.5})
    Runtime().log("by hand")
    lines = [parsed(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("task") for line in lines] == ["chief-0", "evaluator-0", None]
    assert [(line.get("step"), line.get("loss")) for line in lines] == [("5", "0.5"), ("5", "0.5"), (None, None)]


def test_metrics_that_are_left_out_of_reports_are_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    here = of("chief")
    for _ in range(3):
        here.progress.report(metrics={"confusion": [[1.0]], "accuracy": 0.5})
    here.progress.report(metrics={f"list-{number}": [1.0] for number in range(7)})
    first, second = (parsed(line) for line in capsys.readouterr().out.splitlines())
    assert first["level"] == "warning"
    assert first["message"].endswith("at most 48 of them: confusion")
    assert second["message"].endswith("list-0, list-1, list-2, list-3, list-4 and 2 more")
