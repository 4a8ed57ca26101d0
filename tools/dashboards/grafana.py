# SPDX-License-Identifier: Apache-2.0
"""The dashboards as Grafana reads them.

python -m tools.dashboards.grafana      # writes helm/dtjob/files/dashboards/
"""

import json
import string
from pathlib import Path
from typing import Any

from tools.chart import CHART
from tools.dashboards.jobs import JOBS
from tools.dashboards.operator import OPERATOR
from tools.dashboards.panels import Dashboard, Panel, Query, Row, Variable

DASHBOARDS = (JOBS, OPERATOR)
FILES = CHART / "files" / "dashboards"
SCHEMA_VERSION = 39
"""Of Grafana 11. Newer ones read it too."""
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}

Json = dict[str, Any]


def model(dashboard: Dashboard) -> Json:
    """The JSON model of a dashboard."""
    panels: list[Json] = []
    top = 0
    for row in dashboard.rows:
        placed, top = _placed(row, top)
        panels += [{"id": number, **one} for number, one in enumerate(placed, len(panels) + 1)]
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "refresh": 1,
        "options": [],
        "regex": "",
    }
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.about,
        "tags": ["dtjob"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "templating": {"list": [source, *map(_variable, dashboard.variables)]},
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    }


def text(dashboard: Dashboard) -> str:
    """The file of a dashboard."""
    return json.dumps(model(dashboard), indent=1) + "\n"


def path(dashboard: Dashboard) -> Path:
    """Where the file is."""
    return FILES / f"{dashboard.uid}.json"


def _placed(row: Row, top: int) -> tuple[list[Json], int]:
    """The row and its panels at their places, and where the next row begins."""
    placed: list[Json] = [
        {"type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": _place(0, top, 24, 1)}
    ]
    top, left, height = top + 1, 0, 0
    for panel in row.panels:
        if left + panel.width > 24:
            top, left, height = top + height, 0, 0
        placed.append({**_panel(panel), "gridPos": _place(left, top, panel.width, panel.height)})
        left, height = left + panel.width, max(height, panel.height)
    return placed, top + height


def _place(left: int, top: int, width: int, height: int) -> Json:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(panel: Panel) -> Json:
    field, options, more = _LOOKS[panel.kind](panel)
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "targets": [_target(panel, query, string.ascii_uppercase[at]) for at, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": {"unit": panel.unit, **field}, "overrides": []},
        "options": options,
        **more,
    }


def _target(panel: Panel, query: Query, reference: str) -> Json:
    at_once = panel.kind in ("stat", "table")
    return {
        "refId": reference,
        "datasource": _SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "instant": at_once,
        "range": not at_once,
        "format": "table" if panel.kind == "table" else "time_series",
    }


def _stat(panel: Panel) -> tuple[Json, Json, Json]:
    steps = panel.steps or ((0.0, "blue"),)
    found = [{"color": colour, "value": None if at == 0 else at} for at, colour in steps]
    options = {
        "colorMode": "value",
        "graphMode": "none",
        "textMode": "value",
        "justifyMode": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    return {"thresholds": {"mode": "absolute", "steps": found}}, options, {}


def _timeseries(panel: Panel) -> tuple[Json, Json, Json]:
    custom = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "showPoints": "never",
        "fillOpacity": 30 if panel.stacked else 5,
        "spanNulls": False,
        "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
    }
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    limits: Json = {"max": 1} if panel.unit == "percentunit" else {}
    if panel.from_zero:
        limits["min"] = 0
    field = {"custom": custom, "color": {"mode": "palette-classic"}, **limits}
    return field, {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}, {}


def _state_timeline(panel: Panel) -> tuple[Json, Json, Json]:
    said = {"0": {"text": "no", "color": "#9fa7b3", "index": 0}, "1": {"text": "yes", "color": "green", "index": 1}}
    field = {"mappings": [{"type": "value", "options": said}], "custom": {"fillOpacity": 70, "lineWidth": 0}}
    options = {"mergeValues": True, "showValue": "never", "rowHeight": 0.8, "legend": {"showLegend": False}}
    return field, options, {}


def _table(panel: Panel) -> tuple[Json, Json, Json]:
    names = {f"Value #{string.ascii_uppercase[at]}": one.legend for at, one in enumerate(panel.queries)}
    names |= {"job_namespace": "Namespace", "job_name": "Job", "phase": "Phase", "reason": "Reason"}
    hidden = {"Time": True, "Value #A": True}
    transformations = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names, "indexByName": {}}},
    ]
    percent = {
        "matcher": {"id": "byName", "options": "Goodput"},
        "properties": [{"id": "unit", "value": "percentunit"}],
    }
    made = {"transformations": transformations}
    field = {"defaults": {"unit": panel.unit, "custom": {"filterable": True}}, "overrides": [percent]}
    return {}, {"showHeader": True, "cellHeight": "sm"}, {**made, "fieldConfig": field}


_LOOKS = {"stat": _stat, "timeseries": _timeseries, "state-timeline": _state_timeline, "table": _table}


def _variable(variable: Variable) -> Json:
    return {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": variable.query, "refId": f"variable-{variable.name}"},
        "definition": variable.query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "hide": 0,
        "regex": "",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def main() -> None:
    """Write all of them."""
    FILES.mkdir(exist_ok=True)
    for dashboard in DASHBOARDS:
        path(dashboard).write_text(text(dashboard))


if __name__ == "__main__":
    main()
