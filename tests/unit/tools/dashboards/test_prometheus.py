# SPDX-License-Identifier: Apache-2.0
"""The Prometheus of `make dashboards` scrapes what the monitors of the chart select."""

import re
from pathlib import Path

from dtjob.objects import labels
from tools.chart import CHART
from tools.dashboards.prometheus import configuration


def test_the_targets_are_those_of_the_charts_monitors() -> None:
    operator, jobs = configuration(Path("kubeconfig"))["scrape_configs"]
    template = (CHART / "templates" / "metrics.yaml").read_text()
    ports = re.findall(r"^ +- port: (\w+)$", template, re.M)
    kept = [{rule["source_labels"][0]: rule["regex"] for rule in one["relabel_configs"]} for one in (operator, jobs)]
    name = "__meta_kubernetes_pod_container_port_name"
    assert [one[name] for one in kept] == ports
    assert f"key: {labels.JOB_UID}," in template
    assert kept[1][f"__meta_kubernetes_pod_label_{re.sub(r'[^a-z]', '_', labels.JOB_UID)}"] == ".+"
