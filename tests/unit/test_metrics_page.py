# SPDX-License-Identifier: Apache-2.0
"""docs/reference/metrics.md has every metric of the operator and of the trainer, and no other."""

import re
from pathlib import Path

from tests.unit.exposed_metrics import labels_by_metric

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
PROMETHEUS = {"job", "instance", "namespace", "pod", "container", "service", "endpoint", "node"}
"""Labels that Prometheus, or the Prometheus operator's monitors, set on what they scrape."""
OF_EVERY_JOB = {"job_namespace", "job_name"}


def test_the_page_has_every_metric_with_its_labels_and_no_other() -> None:
    said = {
        name: set(re.findall(r"`(\w+)`", labels)) for name, labels in re.findall(r"^\| `(\w+)` \|([^|]*)\|", PAGE, re.M)
    }
    ours = {name: labels for name, labels in labels_by_metric().items() if name.startswith("dtjob_")}
    exposed: dict[str, set[str]] = {}
    for name, labels in ours.items():
        exposed.setdefault(re.sub(r"_(bucket|sum|count)$", "", name), set()).update(labels)
    always = {"dtjob_job_": OF_EVERY_JOB, "dtjob_trainer_": OF_EVERY_JOB | {"task"}}
    for name, labels in exposed.items():
        common = next((common for prefix, common in always.items() if name.startswith(prefix)), set())
        assert common <= labels, name
        assert said.pop(name, None) == labels - common - {"le"}, name  # le: a histogram's own
    assert said == {}


def test_no_label_is_one_that_prometheus_sets() -> None:
    assert not set().union(*labels_by_metric().values()) & PROMETHEUS
