# SPDX-License-Identifier: Apache-2.0
"""A job on the cluster as its user sees it: applied by kubectl, and waited for by the name of what should come.

    job = TrainingJob(cluster, api, namespace, digits(image, epochs=30))
    job.apply()
    job.wait("Running", lambda found: found["status"]["phase"] == "Running")
    job.wait_step(100)
    assert job.pods()["worker-1"]["status"]["phase"] == "Running"

A wait that is not fulfilled says what it waited for and how job and pods stand.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import yaml

from dtjob.objects import labels, topology
from tests.cluster.support.jobs import GROUP
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api, Object

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
"""Labels of a namespace."""
TIMEOUT = 240.0
"""Seconds for what takes a few on a quiet machine: four TensorFlow processes may share two cores with other work."""
_ASK = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:2223/status', timeout=5).read().decode())"


def digits(
    image: str,
    name: str = "digits",
    strategy: str = "MultiWorkerMirrored",
    *,
    epochs: int = 30,
    every_steps: int = 50,
    **spec: Any,
) -> Object:
    """The example as a job (23 steps an epoch), its checkpoints on the claim of the job's name."""
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name},
        "spec": {
            "strategy": strategy,
            "image": image,
            "program": {
                "entrypoint": "examples/digits.py",
                "args": [f"--epochs={epochs}", "--model=/checkpoints/model.keras"],
            },
            "replicaSpecs": {"chief": {}, "worker": {"replicas": 2}},
            "checkpoint": {
                "storage": {"volume": {"persistentVolumeClaim": {"claimName": name}}},
                "everyEpochs": 0,
                "everySteps": every_steps,
                "everySeconds": 0,
            },
            **spec,
        },
    }


class TrainingJob:
    """One job in one namespace."""

    def __init__(self, cluster: Cluster, api: Api, namespace: str, manifest: Object) -> None:
        self._cluster, self._api, self.namespace = cluster, api, namespace
        self.manifest = manifest
        self.name: str = manifest["metadata"]["name"]

    def apply(self) -> None:
        """`kubectl apply`, as the user does it."""
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(self.manifest))

    def delete(self) -> None:
        """`kubectl delete`, and return when none of its pods is left. They are told to go too: the garbage collector
        learns of a definition up to 30 s after it was made."""
        self.kubectl("delete", "dtjob", self.name)
        for pod in self.pods().values():
            self._api.delete("pods", self.namespace, pod["metadata"]["name"])
        self._api.wait("pods", self.namespace, lambda pods: not self._newest(pods), 120)

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> Any:
        """kubectl in the job's namespace."""
        return self._cluster.kubectl("--namespace", self.namespace, *arguments, stdin=stdin, check=check)

    def get(self) -> Object:
        """The job as it is now."""
        return self._api.get("dtjobs", self.namespace, self.name)

    def wait(self, what: str, condition: Callable[[Object], Any], timeout: float = TIMEOUT) -> Object:
        """Return the job once `condition` holds for it. Raises AssertionError that names `what`; at once where the
        job has Failed."""

        def holds(found: Object | None) -> Any:
            if not found or "phase" not in found.get("status", {}):
                return False
            met = condition(found)
            assert met or found["status"]["phase"] != "Failed", self._missed(what, "the job has failed")
            return met

        with _named(self, what, timeout):
            found = self._api.wait_for("dtjobs", self.namespace, self.name, holds, timeout)
        assert found is not None
        return found

    def wait_phase(self, phase: str, timeout: float = TIMEOUT) -> Object:
        """Return the job once it is in this phase."""
        return self.wait(f"phase {phase}", lambda found: found["status"]["phase"] == phase, timeout)

    def wait_up(self) -> Object:
        """Return the job once all its tasks are up."""

        def up(found: Object) -> bool:
            ready, _, of = found["status"].get("ready", "0/?").partition("/")
            return found["status"]["phase"] == "Running" and ready == of

        return self.wait("Running with every task up", up)

    def wait_pods(self, what: str, condition: Callable[[dict[str, Object]], Any], timeout: float = TIMEOUT) -> None:
        """Return once `condition` holds for the pods by task id, as `pods()` gives them."""
        with _named(self, what, timeout):
            self._api.wait("pods", self.namespace, lambda seen: condition(self._newest(seen)), timeout)

    def wait_gone(self, pod: Object) -> None:
        """Return once this very pod is gone from the API server."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        with _named(self, f"the end of pod {name}", TIMEOUT):
            self._api.wait_for(
                "pods", self.namespace, name, lambda found: not found or found["metadata"]["uid"] != uid, TIMEOUT
            )

    def pods(self) -> dict[str, Object]:
        """The newest pod of each task, by task id."""
        return self._newest({pod["metadata"]["name"]: pod for pod in self._api.list("pods", self.namespace)})

    def report(self, task: str = "chief-0") -> Object:
        """What the task's supervisor says of itself, asked inside its pod; empty while it cannot be asked."""
        pod = self.pods().get(task)
        if pod is None:
            return {}
        done = self.kubectl("exec", pod["metadata"]["name"], "--", "python3", "-c", _ASK, check=False)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def wait_report(self, what: str, condition: Callable[[Object], Any], task: str = "chief-0") -> Object:
        """Return the task's report once `condition` holds for it: it is newer than the status, which lags behind."""
        limit = time.monotonic() + TIMEOUT
        while True:
            found = self.report(task)
            if found and condition(found):
                return found
            assert time.monotonic() < limit, self._missed(what, f"{TIMEOUT:.0f} s are over; {task} says {found}")
            assert self.get().get("status", {}).get("phase") != "Failed", self._missed(what, "the job has failed")
            time.sleep(0.5)

    def wait_step(self, step: int) -> int:
        """Return the chief's step once it has trained so far."""
        found = self.wait_report(f"step {step} at the chief", lambda report: report.get("step", 0) >= step)
        return int(found["step"])

    def wait_checkpoint(self, step: int = 1) -> int:
        """Return the step of the chief's newest checkpoint once there is one of this step or later."""

        def saved(report: Object) -> bool:
            return bool(report.get("checkpoint", {}).get("step", 0) >= step)

        return int(self.wait_report(f"a checkpoint at step {step} or later", saved)["checkpoint"]["step"])

    def wait_restored(self, step: int) -> Object:
        """Return the chief's report once it trains again, from a checkpoint of this step or later."""

        def restored(report: Object) -> bool:
            return bool(step <= report.get("restoredStep", -1) < report["step"])

        return self.wait_report(f"training from a checkpoint at step {step} or later", restored)

    def wait_replaced(self, before: dict[str, Object], *tasks: str) -> None:
        """Return once these tasks' pods of the next attempt after those of `before` run."""

        wanted = {task: topology.attempt_of(before[task]) + 1 for task in tasks}

        def replaced(pods: dict[str, Object]) -> bool:
            return all(running(pods.get(task)) and topology.attempt_of(pods[task]) == wanted[task] for task in tasks)

        self.wait_pods(f"running pods of the attempts {wanted}", replaced)

    def wait_log(self, task: str, words: str) -> None:
        """Return once the log of the task's newest pod has these words."""
        limit = time.monotonic() + TIMEOUT
        while words not in self.logs(task):
            assert time.monotonic() < limit, self._missed(
                f"{words!r} in the log of {task}", f"{TIMEOUT:.0f} s are over"
            )
            time.sleep(0.5)

    def logs(self, task: str) -> str:
        """`kubectl logs` of the task's newest pod."""
        return str(self.kubectl("logs", self.pods()[task]["metadata"]["name"]).stdout)

    def described(self) -> str:
        """How job and pods stand, for messages."""
        status = self.get().get("status", {})
        kept = ("phase", "reason", "message", "ready", "progress", "checkpoint", "restarts", "lastFailure", "incident")
        lines = [f"job {self.name}: {json.dumps({name: status[name] for name in kept if name in status})}"]
        for pod in self._api.list("pods", self.namespace):
            states = [{one["name"]: one.get("state")} for one in pod.get("status", {}).get("containerStatuses") or ()]
            going = " (being deleted)" if pod["metadata"].get("deletionTimestamp") else ""
            lines.append(
                f"pod {pod['metadata']['name']}{going} on {pod['spec'].get('nodeName')}: "
                f"{pod.get('status', {}).get('phase')} {json.dumps(states)}"
            )
        return "\n  ".join(lines)

    def _newest(self, pods: dict[str, Object]) -> dict[str, Object]:
        ours = [pod for pod in pods.values() if labels.of(pod).get(labels.JOB_NAME) == self.name]
        ours = [pod for pod in ours if labels.ATTEMPT in labels.of(pod)]  # a placeholder is no attempt at a task
        return {labels.task_id(pod): pod for pod in sorted(ours, key=topology.attempt_of)}

    def _missed(self, what: str, why: str) -> str:
        return f"waited for {what}: {why}\n  {self.described()}"


class _named:  # noqa: N801 - reads as a word in `with`
    """Puts what was waited for in front of a wait's own AssertionError."""

    def __init__(self, job: TrainingJob, what: str, timeout: float) -> None:
        self._job, self._what, self._timeout = job, what, timeout

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, AssertionError) and not str(error).startswith("waited for"):
            raise AssertionError(self._job._missed(self._what, f"{self._timeout:.0f} s are over")) from None


def ids(pods: dict[str, Object]) -> dict[str, tuple[str, str]]:
    """Each task's pod uid and container id: the same as long as neither pod nor container was replaced."""
    found = {}
    for task, pod in pods.items():
        (container,) = [one for one in pod["status"]["containerStatuses"] if one["name"] == "tensorflow"]
        assert container["restartCount"] == 0, f"{task}: {container}"
        found[task] = (pod["metadata"]["uid"], container["containerID"])
    return found


def causes(now: Object, before: Object) -> dict[str, int]:
    """The causes of the restarts that a job's status counts now and did not before, each with its number."""
    counted, earlier = now["status"]["restarts"], before["status"]["restarts"]
    new = Counter(counted.get("causes", {}))
    new.subtract(earlier.get("causes", {}))
    found = {cause: number for cause, number in new.items() if number}
    assert counted["total"] - earlier["total"] == sum(found.values())
    return found


def attempts(pods: dict[str, Object]) -> dict[str, int]:
    """Each task's attempt, from 0."""
    return {task: topology.attempt_of(pod) for task, pod in pods.items()}


def running(pod: Object | None) -> bool:
    """Whether the pod's training container runs."""
    statuses = (pod or {}).get("status", {}).get("containerStatuses") or ()
    return any("running" in (one.get("state") or {}) for one in statuses if one["name"] == "tensorflow")


def last_incident(job: Object) -> Object:
    """The job's last incident without the time of its end: a checkpoint that is saved meanwhile may end it earlier."""
    incident = job["status"].get("internal", {}).get("incident") or {}
    return {field: value for field, value in incident.items() if field != "endsAt"}
