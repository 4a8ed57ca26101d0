# SPDX-License-Identifier: Apache-2.0
"""Draws the dashboards from a real run, and fails if a panel has no data.

    make dashboards        # Linux and root: two nodes, the operator by helm, Prometheus; about five minutes

A job trains on the nodes. A worker's process is killed, then the chief's container. Another job waits for a node that
there is not, and a third is suspended. Prometheus scrapes all of it. The expression of each panel is run, and
docs/images/ gets the answers as pictures: this project has no Grafana.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from dtjob.api.job import API_VERSION, KIND
from tools import binaries, images
from tools.chart import NAMESPACE, find_helm, manifest
from tools.cluster.bare_node import BareNode
from tools.cluster.rest import Api, Object
from tools.dashboards import draw, grafana
from tools.dashboards.panels import Dashboard
from tools.dashboards.prometheus import Prometheus, Series
from tools.node import packages
from tools.programs import NODE

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "images"
TEAM = "vision"
"""The namespace of the jobs."""
CONTAINER = "tensorflow"
WAIT_SECONDS = 400.0
BETWEEN_SECONDS = 40.0
"""Time that is left to training between what happens to it."""
RATE_INTERVAL = "20s"
"""Grafana's $__rate_interval is four scrapes or more."""


def job(name: str, image: str, **spec: Any) -> Object:
    """The example as a job: chief and two workers, checkpoints on the claim of its name."""
    claim = {"volume": {"persistentVolumeClaim": {"claimName": name}}}
    roles = {"chief": {}, "worker": {"replicas": 2}}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {
            "strategy": "MultiWorkerMirrored",
            "image": image,
            "program": {"entrypoint": "examples/digits.py", "args": ["--epochs=100000"]},
            "replicaSpecs": roles,
            "checkpoint": {"storage": claim, "everyEpochs": 0, "everySteps": 50, "everySeconds": 0},
            **spec,
        },
    }


class Run:
    """The cluster with the operator and the jobs."""

    def __init__(self, stack: ExitStack, helm: Path) -> None:
        built = images.build(say=say)
        self.node = stack.enter_context(BareNode(binaries.find(NODE, say=say)))
        operator, self.image = (self.node.load(built[name]) for name in ("operator", "trainer"))
        self.api = Api(self.node.kubeconfig)
        repository, _, tag = operator.rpartition(":")
        settings = f"--set=image.repository={repository},image.tag={tag},operator.reportSeconds=1"
        self.node.kubectl("apply", "--server-side", "-f", "-", stdin=manifest(helm, settings))
        self.api.create("namespaces", None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        self.api.wait_established()
        self.node.kubectl("rollout", "status", "deployment/dtjob", "-n", NAMESPACE, f"--timeout={WAIT_SECONDS:.0f}s")

    def submit(self, made: Object) -> None:
        """Create a job and its claim."""
        self.node.claim(TEAM, made["metadata"]["name"], shared=True)
        self.api.create("dtjobs", TEAM, made)

    def wait(self, name: str, what: str, holds: Callable[[Object], Any]) -> Object:
        """Return the status of a job once it holds. Raises AssertionError if that takes too long."""
        found = self.api.wait_for(
            "dtjobs", TEAM, name, lambda one: one and "status" in one and holds(one["status"]), WAIT_SECONDS
        )
        assert found is not None
        say(f"{name}: {what}")
        return dict(found["status"])

    def pod(self, task: str) -> Object:
        """The pod of a task of the job `digits` that runs now."""
        role, index = task.split("-")
        selector = f"training.dtjob.dev/role={role},training.dtjob.dev/index={index},training.dtjob.dev/job-name=digits"
        pods = self.api.list("pods", TEAM, selector)
        return next(one for one in pods if "deletionTimestamp" not in one["metadata"])


def lead(run: Run) -> None:
    """The story that the dashboards show."""
    big = job("too-big", run.image)
    big["spec"]["replicaSpecs"]["worker"] |= {"resources": {"requests": {"cpu": "64"}}}
    run.submit(job("digits", run.image))
    run.submit(big)
    run.submit(job("later", run.image, suspend=True))
    status = run.wait("digits", "trains and saves", lambda one: one.get("checkpoint", {}).get("step", 0) > 0)
    for task, kill in (("worker-1", run.node.kill_program), ("chief-0", run.node.kill_container)):
        time.sleep(BETWEEN_SECONDS)
        before = status.get("restarts", {}).get("total", 0)
        kill(run.pod(task), CONTAINER)
        say(f"{task} is killed")
        restarted = run.wait("digits", "restarts", lambda one, before=before: one["restarts"]["total"] > before)
        saved = restarted["checkpoint"]["step"]
        status = run.wait("digits", "trains again", lambda one, saved=saved: one["checkpoint"]["step"] > saved)
    time.sleep(BETWEEN_SECONDS)


class Answers(Protocol):
    """What a Prometheus answers."""

    def at(self, expression: str, moment: float) -> list[Series]:
        """At one moment."""

    def between(self, expression: str, begin: float, end: float) -> list[Series]:
        """In a range of time."""


def answers(prometheus: Answers, dashboard: Dashboard, begin: float, end: float) -> dict[str, list[list[Series]]]:
    """What each panel of a dashboard shows. Raises ValueError with the panels that have no data."""
    found: dict[str, list[list[Series]]] = {}
    for row in dashboard.rows:
        for panel in row.panels:
            expressions = [concrete(query.expression) for query in panel.queries]
            if panel.kind in ("stat", "table"):
                series = [prometheus.at(one, end) for one in expressions]
            else:
                series = [prometheus.between(one, begin, end) for one in expressions]
            found[draw.key(row.title, panel)] = series
    empty = [name for name, series in found.items() if not all(series)]
    if empty:
        raise ValueError(f"{dashboard.title}: no data for {'; '.join(empty)}")
    return found


def concrete(expression: str) -> str:
    """An expression with all jobs chosen."""
    for name, value in (("$__rate_interval", RATE_INTERVAL), ("$namespace", ".+"), ("$job", ".+")):
        expression = expression.replace(name, value)
    return expression


def main() -> None:
    """Run, ask and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PICTURES, help="where the pictures go")
    given = parser.parse_args()
    helm = find_helm()
    if helm is None:
        parser.exit(1, "no helm: install it, or name it by DTJOB_HELM\n")
    packages.ensure(say)
    program = binaries.find(("prometheus",), say=say)["prometheus"]
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        run = Run(stack, helm)
        prometheus = stack.enter_context(Prometheus(program, run.node.kubeconfig, directory))
        begin = time.time()
        lead(run)
        end = time.time()
        for dashboard in grafana.DASHBOARDS:
            found = answers(prometheus, dashboard, begin, end)
            say(f"{dashboard.title}: {len(found)} panels, each with data")
            draw.draw(dashboard, found, given.out / f"{dashboard.uid}.png")


def say(line: str) -> None:
    """For whoever waits."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
