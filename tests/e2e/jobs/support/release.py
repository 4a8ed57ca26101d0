# SPDX-License-Identifier: Apache-2.0
"""The operator on the cluster as its users have it: installed by helm, running in a pod under its own rights."""

import json
from pathlib import Path

from tests.cluster.support.chart import CHART, NAMESPACE, RELEASE, Helm
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api, Object

SETTINGS = ("operator.reportSeconds=1",)
"""Shorter than the default: how often jobs are asked for their steps."""
SELECTOR = f"app.kubernetes.io/name=dtjob,app.kubernetes.io/instance={RELEASE}"
TIMEOUT = 120.0


class Release:
    """One release of the chart. `image` is the operator's reference on the nodes, `values` are the chart's."""

    def __init__(
        self, cluster: Cluster, api: Api, helm: Path, image: str, home: Path, values: tuple[str, ...] = ()
    ) -> None:
        self._cluster, self._api = cluster, api
        self._helm = Helm(helm, cluster, home)
        repository, _, tag = image.rpartition(":")
        self._settings = [*SETTINGS, *values, f"image.repository={repository}", f"image.tag={tag}"]

    def helm(self, *arguments: str, check: bool = True) -> str:
        """Run helm in the release's namespace; returns what it printed. Raises AssertionError with its complaint."""
        done = self._helm(*arguments, check=check)
        return done.stdout + done.stderr

    def install(self, *values: str) -> str:
        """`helm install`, waiting until the operator is up; returns what helm printed, its notes too."""
        return self._apply("install", "--create-namespace", values=values)

    def upgrade(self, *values: str) -> str:
        """`helm upgrade`, waiting until the new operator is up."""
        return self._apply("upgrade", values=values)

    def uninstall(self) -> None:
        """`helm uninstall`, and until no pod of the operator is left."""
        self.helm("uninstall", RELEASE)
        self.wait_pods(0)

    def installed(self) -> bool:
        """Whether the release is there."""
        return RELEASE in [one["name"] for one in json.loads(self.helm("list", "--output=json"))]

    def scale(self, replicas: int) -> None:
        """So many operators, and no other one left."""
        self._cluster.kubectl("--namespace", NAMESPACE, "scale", f"deployment/{RELEASE}", f"--replicas={replicas}")
        self.wait_pods(replicas)

    def pods(self) -> list[Object]:
        """The operator's pods."""
        return self._api.list("pods", NAMESPACE, SELECTOR)

    def wait_pods(self, count: int) -> None:
        """Return once just so many operator pods are there, all of them running."""

        def settled(pods: dict[str, Object]) -> bool:
            ours = [pod for pod in pods.values() if pod["metadata"]["labels"].get("app.kubernetes.io/name") == "dtjob"]
            ready = [pod for pod in ours if pod["status"]["phase"] == "Running"]
            return len(ours) == len(ready) == count and not any("deletionTimestamp" in p["metadata"] for p in ours)

        self._api.wait("pods", NAMESPACE, settled, TIMEOUT)

    def _apply(self, verb: str, *options: str, values: tuple[str, ...]) -> str:
        settings = ",".join([*self._settings, *values])
        return self.helm(verb, RELEASE, str(CHART), *options, "--set", settings, "--wait", f"--timeout={TIMEOUT:.0f}s")
