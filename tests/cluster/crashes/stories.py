# SPDX-License-Identifier: Apache-2.0
"""The lives of jobs in which something fails: what users, nodes and Kueue do in each, step by step.

Each waits for what the operator has to do, whatever befalls it, and ends with a job that has ended or is gone.
"""

import functools
from collections.abc import Callable
from typing import Any

from tests.cluster.crashes.observer import PATIENCE, Observer
from tests.cluster.support import kueue
from tests.cluster.support.gangs import MEMBERS, group_of, wait_until_gone
from tests.cluster.support.jobs import all_created, job, phase_is
from tests.cluster.support.kubelet import Kubelet
from tools.cluster.rest import Api, Object

QUEUE = "kueue.x-k8s.io/queue-name"
ASKED = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
AT_ONCE = {"backoff": {"initialSeconds": 0}}
TWO = ("chief-0", "worker-0")


class Life:
    """One job of a namespace, as its user, its node and Kueue have it."""

    def __init__(self, api: Api, namespace: str, name: str, kubelet: Kubelet, observer: Observer) -> None:
        self.api, self.namespace, self.name = api, namespace, name
        self.observer, self._kubelet = observer, kubelet
        self.uids: list[str] = []
        """Of the job, and of the one of its name that came after it."""

    @property
    def pods(self) -> dict[str, Object]:
        """Those there are, by their names without the job's."""
        return self.observer.pods_of(self.name)

    def create(self, workers: int = 1, more: Object | None = None, queue: str = "", **spec: Any) -> None:
        """A chief and workers; `more` of each replica's, and of the spec."""
        replicas = {"chief": more or {}, "worker": {"replicas": workers, **(more or {})}}
        manifest = job(self.name, replicaSpecs=replicas, **{"failurePolicy": AT_ONCE, **spec})
        manifest["metadata"]["labels"] = {QUEUE: queue} if queue else {}
        self.uids.append(self.api.create("dtjobs", self.namespace, manifest)["metadata"]["uid"])

    def change(self, **spec: Any) -> None:
        """kubectl patch."""
        self.api.patch("dtjobs", self.namespace, self.name, {"spec": spec})

    def runs(self, attempt: int, *tasks: str, **others: int) -> None:
        """Wait until these pods run, and no others are there; and until the operator knows it. `others`: attempts of
        single tasks, such as worker_0."""
        attempts = dict.fromkeys(tasks or TWO, attempt) | {task.replace("_", "-"): one for task, one in others.items()}
        names = {f"{task}-{one}" for task, one in attempts.items()}
        self._wait(
            lambda: (
                (pods := self.pods).keys() == names
                and all(pod["status"].get("phase") == "Running" for pod in pods.values())
                and phase_is("Running")(found := self.found())
                and all_created(found)
            ),
            f"{names} run",
        )

    def phase(self, phase: str) -> None:
        """Wait until the job is in this phase."""
        self._wait(lambda: phase_is(phase)(self.found()), phase)

    def no_pods(self) -> None:
        """Wait until all are gone."""
        self._wait(lambda: not self.pods, "no pods")

    def nothing_left(self) -> None:
        """Wait until none of its objects are there any more."""
        self.no_pods()
        for resource in ("services", "networkpolicies", "configmaps"):
            self.api.wait(
                resource, self.namespace, lambda found: not any(self._is_mine(name) for name in found), PATIENCE
            )

    def exit(self, pod: str, *how: Any) -> None:
        """A pod ends, with this code and reason."""
        self._kubelet.exit(f"{self.name}-{pod}", *how)

    def evict(self, pod: str) -> None:
        """Its node has no memory left for it."""
        self._kubelet.evict(f"{self.name}-{pod}")

    def succeeds(self, chief: int) -> None:
        """This attempt of the chief's finishes, and with it the job."""
        self.exit(f"chief-0-{chief}")
        self.phase("Succeeded")

    def hang(self, pod: str) -> None:
        """It does not end when it is told to."""
        self._kubelet.hang(f"{self.name}-{pod}")

    def release(self, pod: str) -> None:
        """It ends."""
        self._kubelet.release(f"{self.name}-{pod}")

    def delete(self) -> None:
        """kubectl delete."""
        self.api.delete("dtjobs", self.namespace, self.name)
        self.gone()

    def gone(self) -> None:
        """Wait until there is no such job."""
        self._wait(lambda: self.found() is None, "the job is gone")

    def found(self) -> Object | None:
        """The job as it is now."""
        return self.observer.jobs.get(self.name)

    def _is_mine(self, name: str) -> bool:
        return name == self.name or name.startswith(f"{self.name}-")

    def _wait(self, holds: Callable[[], Any], what: str) -> None:
        self.observer.wait(holds, f"{self.name}: {what}")


def plain(life: Life) -> None:
    life.create()
    life.runs(0)
    life.succeeds(0)


def worker_and_chief_restarted(life: Life) -> None:
    """Their supervisors have the others train on: each pod is replaced by itself."""
    life.create()
    life.runs(0)
    life.exit("worker-0-0", 137, "OOMKilled")
    life.runs(0, worker_0=1)
    life.evict("chief-0-0")
    life.runs(1)
    life.succeeds(1)


def group_restarted(life: Life) -> None:
    """A program without our supervisor: all pods are replaced."""
    life.create(workers=2, program=False)
    all_ = ("chief-0", "worker-0", "worker-1")
    life.runs(0, *all_)
    life.exit("worker-1-0", 137)
    life.runs(1, *all_)
    life.succeeds(1)


def failed(life: Life) -> None:
    """The second failure is one too many."""
    life.create(failurePolicy={**AT_ONCE, "maxRestarts": 1})
    life.runs(0)
    life.exit("worker-0-0", 1)
    life.runs(0, worker_0=1)
    life.exit("worker-0-1", 1)
    life.phase("Failed")


def suspended_and_resumed(life: Life) -> None:
    life.create()
    life.runs(0)
    life.change(suspend=True)
    life.phase("Suspended")
    life.no_pods()
    life.change(suspend=False)
    life.runs(1)
    life.succeeds(1)


def scaled(life: Life) -> None:
    life.create(elasticPolicy={"minReplicas": 1, "maxReplicas": 3})
    life.runs(0)
    life.change(replicaSpecs={"worker": {"replicas": 2}})
    life.runs(1, "chief-0", "worker-0", "worker-1")
    life.change(replicaSpecs={"worker": {"replicas": 1}})
    life.runs(2)
    life.succeeds(2)


def deadline_and_time_to_live(life: Life) -> None:
    """The job fails when its time is over, and the operator deletes it."""
    life.create()
    life.runs(0)
    life.change(activeDeadlineSeconds=1)
    life.phase("Failed")
    life.change(ttlSecondsAfterFinished=0)
    life.gone()


def queued_and_preempted(life: Life) -> None:
    life.create(more=ASKED, queue="team-a")
    controller = kueue.Controller(life.api, life.namespace, life.name)
    controller.admit()
    life.runs(0)
    controller.evict()
    life.no_pods()
    controller.workload(lambda found: not found["status"].get("admission"))
    life.phase("Suspended")
    controller.admit()
    life.runs(1)
    life.exit("worker-0-1")  # the operator gives it a minute to end, and the quota back after that
    life.succeeds(1)
    controller.workload(lambda found: any(one["type"] == "Finished" for one in found["status"]["conditions"]))


def deleted_and_made_again(life: Life) -> None:
    """Another job of the same name waits until the chief of the first has ended."""
    life.create()
    life.runs(0)
    life.hang("chief-0-0")
    life.delete()
    life.create()
    life.observer.wait(lambda: "chief-0-0" in life.pods, "the chief of the first hangs")
    life.release("chief-0-0")
    life.runs(0)
    life.succeeds(0)


def in_a_gang(life: Life, provider: str) -> None:
    """The PodGroup is there before the pods, goes as the job is suspended, is made anew, and goes at the end."""
    life.create(scheduling={"gang": {"provider": provider}})
    life.runs(0)
    first = group_of(life.api, life.namespace, provider, life.name)
    assert first is not None
    for pod in life.pods.values():
        assert MEMBERS[provider](pod, life.name)
        assert first["metadata"]["creationTimestamp"] <= pod["metadata"]["creationTimestamp"]
    life.change(suspend=True)
    life.phase("Suspended")
    wait_until_gone(life.api, life.namespace, provider, life.name, PATIENCE)
    life.no_pods()
    life.change(suspend=False)
    life.runs(1)
    second = group_of(life.api, life.namespace, provider, life.name)
    assert second is not None
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    life.succeeds(1)
    wait_until_gone(life.api, life.namespace, provider, life.name, PATIENCE)


Story = Callable[[Life], None]
STORIES: dict[str, Story] = {
    **{
        one.__name__.replace("_", " "): one
        for one in (
            plain,
            worker_and_chief_restarted,
            group_restarted,
            failed,
            suspended_and_resumed,
            scaled,
            deadline_and_time_to_live,
            queued_and_preempted,
            deleted_and_made_again,
        )
    },
    **{f"in a gang of {one}": functools.partial(in_a_gang, provider=one) for one in ("Volcano", "Coscheduling")},
}
