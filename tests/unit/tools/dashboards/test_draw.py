# SPDX-License-Identifier: Apache-2.0
"""Pictures of dashboards: what a series is called, how a number is written, and that all panels are there."""

import pytest
from matplotlib.text import Text

from tools.dashboards import draw, grafana
from tools.dashboards.panels import Panel, Query
from tools.dashboards.prometheus import Series
from tools.dashboards.record import answers

LABELS = {
    "job_namespace": "a",
    "job_name": "digits",
    "task": "chief-0",
    "phase": "Running",
    "reason": "AllTasksRunning",
}
SERIES = Series(LABELS, [(10.0, 0.0), (12.0, 1.0), (14.0, 1.0)])


class Answering:
    """A Prometheus that has one series for each expression, and none for those with a word."""

    def __init__(self, without: str = "nothing") -> None:
        self._without = without

    def at(self, expression: str, moment: float) -> list[Series]:
        assert "$" not in expression
        return [] if self._without in expression else [SERIES]

    def between(self, expression: str, begin: float, end: float) -> list[Series]:
        return self.at(expression, end)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.934, "percentunit", "93.4 %"),
        (1200, "short", "1,200"),
        (0.123456, "short", "0.123"),
        (0.002, "s", "2 ms"),
        (90, "s", "1.5 min"),
        (3 * 2**20, "bytes", "3 MiB"),
        (2.5, "reqps", "2.5 /s"),
    ],
)
def test_a_number_is_written_with_its_unit(value: float, unit: str, text: str) -> None:
    assert draw.figures(value, unit) == text


def test_a_series_is_called_by_its_labels() -> None:
    assert draw.label("{{job_name}} {{task}}{{other}}", LABELS) == "digits chief-0"


@pytest.mark.parametrize("dashboard", grafana.DASHBOARDS, ids=lambda one: one.uid)
def test_a_picture_has_the_title_of_each_row_and_panel(dashboard: grafana.Dashboard) -> None:
    picture = draw.picture(dashboard, answers(Answering(), dashboard, 10, 14))
    words = {text.get_text() for text in picture.findobj(Text)}
    titles = {row.title for row in dashboard.rows} | {panel.title for panel in dashboard.panels()}
    assert titles <= words


def test_a_panel_without_data_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^dtjob jobs: no data for Progress: Loss$"):
        answers(Answering("dtjob_trainer_loss"), grafana.JOBS, 10, 14)


def test_titles_of_a_row_are_not_twice_there() -> None:
    for dashboard in grafana.DASHBOARDS:
        keys = [draw.key(row.title, panel) for row in dashboard.rows for panel in row.panels]
        assert len(set(keys)) == len(keys)
    assert draw.key("Now", Panel("Queue", (Query("a"),), "A.")) == "Now: Queue"
