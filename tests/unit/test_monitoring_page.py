# SPDX-License-Identifier: Apache-2.0
"""docs/operate/monitoring.md: its expressions name metrics and labels that are there, and its port is a pod's."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.objects.pod.pod import pod
from tests.unit.operator import builders

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operate" / "monitoring.md").read_text()
METRICS = (DOCS / "reference" / "metrics.md").read_text()
OBJECTS: dict[str, Any] = {
    one["kind"]: one
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
    for one in yaml.safe_load_all(block)
    if "kind" in one
}
RULES = [rule for group in OBJECTS["PrometheusRule"]["spec"]["groups"] for rule in group["rules"]]
EXPRESSIONS = [rule["expr"] for rule in RULES] + re.findall(r"^\| [^`|]+ \| `(.+)` \|$", PAGE, re.M)
LABELS = re.compile(r"(?:\b(?:by|on) \(([^)]*)\)|\{(\w+)=)")


def test_there_are_rules_and_expressions() -> None:
    assert len(RULES) > 5
    assert len(EXPRESSIONS) > len(RULES) + 4


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_metrics_and_labels_that_are_there(expression: str) -> None:
    """`test_metrics_page.py` compares the page of all metrics with the code."""
    known = set(re.findall(r"^\| `(dtjob_\w+)`", METRICS, re.M))
    grouped = {name.strip() for found in LABELS.findall(expression) for name in ",".join(found).split(",") if name}
    metrics = {name.removesuffix("_bucket") for name in re.findall(r"\bdtjob_\w+", expression)} - grouped
    assert metrics
    assert metrics <= known
    assert {label for label in grouped if f"`{label}`" not in METRICS} <= {"le"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_says_what_is_wrong(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "annotations"}
    assert rule["annotations"]["summary"].endswith(".")


def test_results_of_reconciles_are_those_of_the_operator() -> None:
    for result in re.findall(r'result="(\w+)"', PAGE):
        assert f"`{result}`" in METRICS


def test_the_pod_monitor_finds_the_pods_and_their_port() -> None:
    made = pod(builders.job(), builders.task("worker-0"), 0)
    (endpoint,) = OBJECTS["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in made["spec"]["containers"][0]["ports"]]
    (selected,) = OBJECTS["PodMonitor"]["spec"]["selector"]["matchExpressions"]
    assert selected["key"] in made["metadata"]["labels"]
