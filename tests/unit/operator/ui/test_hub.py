# SPDX-License-Identifier: Apache-2.0
from typing import Any

from dtjob.ui.hub import Hub
from tests.unit.operator.client.verbs.jobs import RUNNING, job


def named(name: str, **status: Any) -> dict[str, Any]:
    made = job(**status)
    made["metadata"] = {**made["metadata"], "name": name}
    return made


def test_a_browser_gets_the_rows_that_have_changed_and_those_that_are_gone() -> None:
    hub, known = Hub(), set[tuple[str, str]]()
    hub.take([("ADDED", named("a")), ("ADDED", named("b"))])
    version, first = hub.since(-1, known)
    assert [row["name"] for row in first["rows"]] == ["a", "b"]
    assert hub.since(version, known) == (version, {"rows": [], "gone": []})
    hub.take([("MODIFIED", named("b", phase="Failed")), ("DELETED", named("a"))])
    _, then = hub.since(version, known)
    assert [(row["name"], row["phase"]) for row in then["rows"]] == [("b", "Failed")]
    assert then["gone"] == [("team", "a")]
    assert hub.job(("team", "a")) is None


def test_curves_are_collected_from_each_status_and_report() -> None:
    hub = Hub()
    hub.take([("ADDED", named("a", **RUNNING))])
    hub.report(("team", "a"), 260, {"loss": 0.25})
    hub.report(("team", "other"), 1, {"loss": 1})
    found = {one["name"]: (one["steps"], one["values"]) for one in hub.curves(("team", "a"))}
    assert found["loss"] == ([251, 260], [0.5, 0.25])
    assert found["evaluator accuracy"] == ([200], [0.9])
    assert found["steps_per_second"] == ([251], [9.5])
    assert hub.curves(("team", "other")) == []
    hub.take([("DELETED", named("a"))])
    assert hub.curves(("team", "a")) == []
