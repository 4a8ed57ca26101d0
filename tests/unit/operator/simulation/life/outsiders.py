# SPDX-License-Identifier: Apache-2.0
"""What others do to all that the operator makes and writes: webhooks change pods, namespaces terminate, and somebody
forges a status."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dtjob.api.job import KIND
from dtjob.api.status.attempts import finished_to_json
from dtjob.controller.cluster import Refused
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from tests.unit.operator.simulation.facts import attempt_of
from tests.unit.operator.simulation.kueue import FLAVOUR
from tests.unit.operator.simulation.life.people import People

TERMINATING = "unable to create new content in namespace default because it is being terminated"


def injects_a_sidecar(pod: Manifest) -> None:
    """As a service mesh does: before our container."""
    pod["spec"]["containers"].insert(0, {"name": "mesh", "image": "mesh"})


def marks(pod: Manifest) -> None:
    """With labels, annotations and a place of its own."""
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["labels"] = {**labels.of(pod), "team": "vision", "app": "other"}
    metadata["annotations"] = {**metadata.get("annotations", {}), "cost-centre": "7"}
    spec["tolerations"] = [*spec.get("tolerations", []), {"operator": "Exists"}]
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), "pool": "any"}


def ends_at_once(pod: Manifest) -> None:
    """No pod has time to save."""
    pod["spec"]["terminationGracePeriodSeconds"] = 0


def gives_an_hour(pod: Manifest) -> None:
    """A pod that does not end by itself is there for so long."""
    pod["spec"]["terminationGracePeriodSeconds"] = 3600


WEBHOOKS = (injects_a_sidecar, marks, ends_at_once, gives_an_hour)

Forge = Callable[[dict[str, Any], dict[str, int]], None]
"""Changes a status. It is given the attempts of all tasks too."""


def all_have_finished(status: dict[str, Any], attempts: dict[str, int]) -> None:
    """The status says so of each task, whatever its pod does."""
    status.setdefault("internal", {})["finished"] = finished_to_json(attempts)


def the_first_has_finished(status: dict[str, Any], attempts: dict[str, int]) -> None:
    """The same of the task that decides."""
    status.setdefault("internal", {})["finished"] = finished_to_json(dict([next(iter(attempts.items()))]))


def attempts_are_higher(status: dict[str, Any], attempts: dict[str, int]) -> None:
    """No pod is of the attempts that the status tells of."""
    higher = {task: number + 3 for task, number in attempts.items()}
    status.setdefault("internal", {})["attempts"] = {"others": 0, "exceptions": higher}


def memory_is_lost(status: dict[str, Any], attempts: dict[str, int]) -> None:
    """As after a restore from a backup without statuses, of which the rest was written since."""
    status.pop("internal", None)


def all_is_lost(status: dict[str, Any], attempts: dict[str, int]) -> None:
    """The whole status."""
    status.clear()


def budget_is_used_up(status: dict[str, Any], attempts: dict[str, int]) -> None:
    """More is charged than the job may have, and it waits for a year."""
    if incident := status.get("internal", {}).get("incident"):
        incident |= {"charged": 1000, "counted": 1000, "notBefore": "2027-11-21T10:00:00Z"}


def counts_are_gone(status: dict[str, Any], attempts: dict[str, int]) -> None:
    """No restart ever was."""
    for name in ("restarts", "incidents", "lastFailure"):
        status.pop(name, None)


FORGERIES: tuple[Forge, ...] = (
    all_have_finished,
    the_first_has_finished,
    attempts_are_higher,
    memory_is_lost,
    all_is_lost,
    budget_is_used_up,
    counts_are_gone,
)


class Outsiders(People):
    """Administrators, other controllers, and whoever may write a status."""

    @rule(webhook=st.sampled_from((*WEBHOOKS, None)))
    def webhook_is_installed(self, webhook: Callable[[Manifest], None] | None) -> None:
        """From now on it changes each new pod. None: it is removed."""
        self.world.cluster.webhook = webhook

    @precondition(lambda self: self.names)
    @rule(order=st.randoms(use_true_random=False), pauses=st.sampled_from((0.0, 0.02, 1.0)))
    def namespace_terminates(self, order: Any, pauses: float) -> None:
        """It takes nothing new, and all that is in it is deleted, in any order. Then it is made anew."""
        cluster = self.world.cluster
        cluster.refusing["create "] = Refused(TERMINATING)
        found = [key for key in cluster.objects if key[0] != FLAVOUR["kind"]]
        order.shuffle(found)
        for kind, name in found:
            if (kind, name) in cluster.objects:
                cluster.ask_to_delete(kind, name)
                self.world.run(pauses)
        self.world.run(10)
        self.kubelets_end_what_is_deleted()
        self.world.run(1)
        self.strangers_leave()
        cluster.refusing.pop("create ", None)

    @precondition(lambda self: self.running_jobs())
    @rule(data=st.data(), forge=st.sampled_from(FORGERIES))
    def status_is_forged(self, data: st.DataObject, forge: Forge) -> None:
        """By whoever may write it. Of the job nothing that is counted is true any more."""
        self.forge(data.draw(st.sampled_from(self.running_jobs())), forge)

    def forge(self, name: str, forge: Forge) -> None:
        """kubectl edit --subresource=status."""
        job = self.world.job_named(name)
        chief = topology.chief_task(job)
        ids = [chief.id, *(one.id for one in topology.tasks(job) if one != chief)]
        attempts = {id_: attempt_of(job.status, id_) for id_ in ids}
        before = deepcopy(self.status(name))
        self.world.cluster.rules.is_forged(self.uid(name), before, self.world.now())
        self.world.cluster.change(KIND, name, lambda one: forge(one.setdefault("status", {}), attempts))
        self.world.cluster.lifetimes.is_forged(self.uid(name), before, self.status(name))
        self.world.cluster.plan_rules.is_forged(self.world.cluster.objects[KIND, name])

    def running_jobs(self) -> list[str]:
        """The jobs that go on and have a status."""
        return [name for name in self.names if self.goes_on(name) and self.status(name)]

    def finish_by_forgery(self, name: str) -> None:
        """Its status says that all have finished, and they train on. It runs until they really have."""
        before = [pod for pod in self.answering() if self.facts(pod).job_uid == self.uid(name)]
        self.forge(name, all_have_finished)
        self.world.run(60)
        assert self.goes_on(name), f"{name} has ended, and {before} train"
