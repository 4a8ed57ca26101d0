# SPDX-License-Identifier: Apache-2.0
"""docs/reference/metrics.md has every metric of the operator and of the trainer, and no other."""

import re
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from dtjob.api.spec.network import Network
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.endpoints.metrics import Metrics, job_metrics
from dtjob.objects.manifest import Manifest
from dtjob_trainer.contract.task import Task
from dtjob_trainer.supervisor.metrics import exposition
from dtjob_trainer.supervisor.metrics import labels_of as labels_of_task

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
STATUS = {
    "step": 1, "totalSteps": 2, "epoch": 1, "loss": 0.5, "stepsPerSecond": 1.0, "etaSeconds": 1.0,
    "checkpoint": {"step": 1, "time": "1970-01-01T00:01:00Z"}, "metrics": {"a": 1.0},
    "evaluation": {"metrics": {"a": 1.0}}, "state": "training",
}  # fmt: skip


def as_exposed(name: str, kind: str) -> str:
    return f"{name}_total" if kind == "counter" else name


def test_the_page_has_every_metric_and_no_other() -> None:
    metrics = Metrics()
    metrics.watch(Store(), WorkQueue())
    families = [*metrics.registry.collect(), *job_metrics([])]
    operators = {as_exposed(one.name, one.type) for one in families if one.name.startswith("dtjob_")}
    _, text = exposition(STATUS, {"task": "chief-0"})
    trainers = {as_exposed(one.name, one.type) for one in text_string_to_metric_families(text.decode())}
    assert set(re.findall(r"^\| `(dtjob_\w+)`", PAGE, re.M)) == operators | trainers


PROMETHEUS = {"job", "instance", "namespace", "pod", "container", "service", "endpoint", "node"}
"""Labels that Prometheus, or the Prometheus operator's monitors, set on what they scrape."""


def labels_of(families: Iterable[Metric]) -> set[str]:
    return {label for family in families for sample in family.samples for label in sample.labels}


def test_no_label_is_one_that_prometheus_sets_and_the_page_names_them_all() -> None:
    metrics = Metrics()
    metrics.called("GET", "pods", "200")
    metrics.status_written({}, {"restarts": {"total": 1, "causes": {"Error": 1}}})
    status = {"phase": "Running", "progress": {"step": 1}, "goodput": {"seconds": {}, "counted": {"doing": "training"}}}
    job: Manifest = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"strategy": "Mirrored"}, "status": status}
    operators = labels_of([*metrics.registry.collect(), *job_metrics([job])])
    task = Task("a", "b", "uid", "worker", 1)
    _, text = exposition(STATUS, labels_of_task(task))
    trainers = labels_of(text_string_to_metric_families(text.decode()))
    assert {"dtjob_name", "dtjob_namespace"} <= operators & trainers
    assert not (operators | trainers) & PROMETHEUS
    assert {label for label in operators | trainers if f"`{label}`" not in PAGE} == {"le"}  # a histogram's own


def test_the_page_names_the_default_of_the_status_port() -> None:
    assert f"`network.statusPort` ({Network().status_port} where left out)" in PAGE
