# SPDX-License-Identifier: Apache-2.0
"""A Prometheus that scrapes the operator and the pods of jobs as the monitors of the chart say, and its answers."""

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from dtjob.local.processes.addresses import free_ports
from tools.chart import CHART, NAMESPACE

INTERVAL = 2
"""Seconds between two scrapes."""
START_SECONDS = 60.0
_PORT_NAME = "__meta_kubernetes_pod_container_port_name"
_JOB_UID = "__meta_kubernetes_pod_label_training_dtjob_dev_job_uid"
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Series:
    """One series of an answer: its labels, and its values by time (seconds since the epoch)."""

    labels: dict[str, str]
    values: list[tuple[float, float]]


class Prometheus:
    """The running server. It keeps its data in `directory`."""

    def __init__(self, program: Path, kubeconfig: Path, directory: Path) -> None:
        self._program, self._directory = program, directory
        self._configuration = directory / "prometheus.yaml"
        self._configuration.write_text(yaml.safe_dump(configuration(kubeconfig)))
        (self._port,) = free_ports(1)

    def __enter__(self) -> Self:
        self._log = (self._directory / "prometheus.log").open("w")
        command = [
            str(self._program),
            f"--config.file={self._configuration}",
            f"--storage.tsdb.path={self._directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT, cwd=self._directory)
        limit = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError, urllib.error.URLError):
                self._get("/-/ready", {})
                return self
            if self._process.poll() is not None or time.monotonic() > limit:
                self.__exit__()
                raise RuntimeError(f"Prometheus does not start: {(self._directory / 'prometheus.log').read_text()}")
            time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def between(self, expression: str, begin: float, end: float) -> list[Series]:
        """The series of an expression in a range of time. Raises ValueError with what Prometheus says of it."""
        parameters = {"query": expression, "start": str(begin), "end": str(end), "step": str(INTERVAL)}
        found = self._answer("/api/v1/query_range", parameters)
        return [Series(_labels(one), [(at, float(value)) for at, value in one["values"]]) for one in found]

    def at(self, expression: str, moment: float) -> list[Series]:
        """The series of an expression at one moment. Raises ValueError with what Prometheus says of it."""
        found = self._answer("/api/v1/query", {"query": expression, "time": str(moment)})
        return [Series(_labels(one), [(one["value"][0], float(one["value"][1]))]) for one in found]

    def _answer(self, path: str, parameters: dict[str, str]) -> list[Any]:
        try:
            answer = json.loads(self._get(path, parameters))
        except urllib.error.HTTPError as error:
            raise ValueError(f"{parameters['query']}: {error.read().decode()}") from None
        return list(answer["data"]["result"])

    def _get(self, path: str, parameters: dict[str, str]) -> str:
        url = f"http://127.0.0.1:{self._port}{path}?{urllib.parse.urlencode(parameters)}"
        with _OPENER.open(url, timeout=30) as answer:
            return str(answer.read().decode())


def _labels(one: dict[str, Any]) -> dict[str, str]:
    return dict(one["metric"])


def configuration(kubeconfig: Path) -> dict[str, Any]:
    """What to scrape: the targets of the chart's ServiceMonitor and PodMonitor; and the chart's rules."""

    def pods(job: str, *kept: tuple[str, str], **more: Any) -> dict[str, Any]:
        relabelled = [{"source_labels": [label], "regex": value, "action": "keep"} for label, value in kept]
        discovery = {"role": "pod", "kubeconfig_file": str(kubeconfig), **more}
        return {"job_name": job, "kubernetes_sd_configs": [discovery], "relabel_configs": relabelled}

    return {
        "global": {"scrape_interval": f"{INTERVAL}s", "evaluation_interval": f"{INTERVAL}s"},
        "rule_files": [str(CHART / "files" / "rules.yaml")],
        "scrape_configs": [
            pods("operator", (_PORT_NAME, "metrics"), namespaces={"names": [NAMESPACE]}),
            pods("jobs", (_PORT_NAME, "status"), (_JOB_UID, ".+")),
        ],
    }
