# SPDX-License-Identifier: Apache-2.0
"""Alerts, dashboards and docs/operate/monitoring.md name metrics, labels and values that are exposed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from dtjob.api.phase import Phase
from dtjob.api.status.goodput import Part
from dtjob.controller.observer import Result
from dtjob_trainer.supervisor.metrics import STATES
from tests.unit.exposed_metrics import labels_by_metric
from tools.chart import CHART
from tools.dashboards import grafana

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operate" / "monitoring.md").read_text()
RUNBOOKS = (DOCS / "operate" / "alerts.md").read_text()
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((CHART / "files" / "rules.yaml").read_text())["groups"] for rule in group["rules"]
]
EXPOSED = labels_by_metric()
OF_A_SCRAPE = {"instance", "job"}
VALUES = {
    "phase": {phase.value for phase in Phase},
    "part": {part.value for part in Part},
    "result": set(get_args(Result)),
    "state": set(STATES),
}
"""Labels with values of a fixed list."""
_FUNCTIONS = re.compile(r"\b(?:by|on) ?\(([^)]*)\)")
_SELECTED = re.compile(r"(\w+)(=~|!~|!=|=)%?[\"'q]([^\"']*)")


def expressions() -> Iterator[tuple[str, str]]:
    """Each expression with where it is, those inside annotations too."""
    for rule in RULES:
        yield rule["alert"], rule["expr"]
        for text in rule["annotations"].values():
            for number, inner in enumerate(re.findall(r"(?:printf|query) \"((?:[^\"\\]|\\.)*)\"", text)):
                yield f"{rule['alert']} {number}", inner
    for dashboard in grafana.DASHBOARDS:
        for panel in dashboard.panels():
            for query in panel.queries:
                yield f"{dashboard.uid}: {panel.title} {query.legend}", query.expression
        for variable in dashboard.variables:
            yield f"{dashboard.uid}: {variable.name}", variable.query
    yield from re.findall(r"^\| ([^`|]+) \| `(dtjob[^`]+|[a-z_]+[ (][^`]+)` \|$", PAGE, re.M)


FOUND = dict(expressions())


def test_there_are_expressions_of_rules_dashboards_and_the_page() -> None:
    assert len(FOUND) > len(RULES) + 40


@pytest.mark.parametrize("where", FOUND)
def test_an_expression_names_metrics_labels_and_values_that_are_there(where: str) -> None:
    expression = FOUND[where]
    metrics = set(re.findall(r"\b(?:dtjob|process)_\w+", expression))
    assert metrics
    assert metrics <= EXPOSED.keys()
    labels = set().union(*(EXPOSED[name] for name in metrics)) | OF_A_SCRAPE
    grouped = {name.strip() for found in _FUNCTIONS.findall(expression) for name in found.split(",")}
    assert grouped <= labels
    for name, _, value in _SELECTED.findall(expression):
        assert name in labels, name
        if name in VALUES:
            assert set(value.split("|")) <= VALUES[name], value


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_links_its_runbook(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["description"].endswith((".", "}}"))
    assert rule["annotations"]["runbook_url"] == f"docs/operate/alerts.md#{rule['alert'].lower()}"
    if rule["alert"].startswith("DtjobJob"):
        assert {"job_namespace", "job_name"} <= set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))


def test_the_page_of_runbooks_has_a_section_for_each_alert_and_no_other() -> None:
    assert re.findall(r"^### (\w+)$", RUNBOOKS, re.M) == [rule["alert"] for rule in RULES]


@pytest.mark.parametrize("dashboard", grafana.DASHBOARDS, ids=lambda one: one.uid)
def test_a_dashboard_of_the_chart_is_what_make_chart_writes(dashboard: grafana.Dashboard) -> None:
    assert grafana.path(dashboard).read_text() == grafana.text(dashboard)


@pytest.mark.parametrize("dashboard", grafana.DASHBOARDS, ids=lambda one: one.uid)
def test_panels_of_a_dashboard_do_not_overlap_and_have_units_and_words(dashboard: grafana.Dashboard) -> None:
    panels = grafana.model(dashboard)["panels"]
    assert [one["id"] for one in panels] == list(range(1, len(panels) + 1))
    cells = [
        (x, y)
        for place in (one["gridPos"] for one in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    for panel in dashboard.panels():
        assert panel.about.endswith(".")
        assert panel.unit
