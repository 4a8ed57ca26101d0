"""docs/reference/metrics.md has every metric of the operator and of the trainer, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from dtjob.api.network import Network
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube.metrics import Metrics, job_metrics
from dtjob_trainer.supervisor.metrics import exposition

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
STATUS = {
    "step": 1, "totalSteps": 2, "epoch": 1, "loss": 0.5, "stepsPerSecond": 1.0, "etaSeconds": 1.0,
    "checkpoint": {"step": 1, "time": "1970-01-01T00:01:00Z"}, "metrics": {"a": 1.0},
    "evaluation": {"metrics": {"a": 1.0}}, "state": "training",
}  # fmt: skip


def as_exposed(name: str, kind: str) -> str:
    return f"{name}_total" if kind == "counter" else name


def test_it_has_every_metric_and_no_other() -> None:
    metrics = Metrics()
    metrics.watch(Store(), WorkQueue())
    families = [*metrics.registry.collect(), *job_metrics([])]
    operators = {as_exposed(one.name, one.type) for one in families if one.name.startswith("dtjob_")}
    _, text = exposition(STATUS, {"task": "chief-0"})
    trainers = {as_exposed(one.name, one.type) for one in text_string_to_metric_families(text.decode())}
    assert set(re.findall(r"^\| `(dtjob_\w+)`", PAGE, re.M)) == operators | trainers


def test_it_names_the_ports_default() -> None:
    assert f"`network.statusPort` ({Network().status_port} where left out)" in PAGE
