# SPDX-License-Identifier: Apache-2.0
"""A pod that does nothing and takes a node's processors, so that there is no room for others."""

from decimal import Decimal

from tests.e2e.jobs.support.volumes import python_pod
from tools.cluster.rest import Api, Object

_SLEEP = "import signal; signal.signal(signal.SIGTERM, lambda *_: exit()); signal.pause()"


def fill(api: Api, namespace: str, node: str, image: str, left: Decimal) -> str:
    """Return once a pod runs on the node that leaves so many cores for requests; returns its name."""
    pod = python_pod("filler", image, _SLEEP)
    wanted = free(api, node) - left
    assert wanted > 0, f"{node} has less than {left} cores left already"
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": str(wanted)}}
    api.create("pods", namespace, pod)
    api.wait_for("pods", namespace, "filler", lambda found: found and found["status"].get("phase") == "Running", 120)
    return "filler"


def free(api: Api, node: str) -> Decimal:
    """The cores of a node that no pod requests."""
    pods = [pod for pod in api.list("pods") if pod["spec"].get("nodeName") == node]
    there = [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    return cores(api.get("nodes", None, node)["status"]["allocatable"]["cpu"]) - sum(map(requested, there), Decimal(0))


def requested(pod: Object) -> Decimal:
    """The cores that a pod's containers request, those that begin before the others left aside."""
    asked = [one.get("resources", {}).get("requests", {}).get("cpu", "0") for one in pod["spec"]["containers"]]
    return sum(map(cores, asked), Decimal(0))


def cores(quantity: str) -> Decimal:
    """A number of processors as Kubernetes writes it."""
    return Decimal(quantity[:-1]) / 1000 if quantity.endswith("m") else Decimal(quantity)
