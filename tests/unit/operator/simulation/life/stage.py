# SPDX-License-Identifier: Apache-2.0
"""What all parts of the machine share: the jobs that there are, their pods, and how one gets another status."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from dtjob.api.job import KIND, Job
from dtjob.api.phase import ENDED
from dtjob.api.spec.elastic_policy import ElasticPolicy
from dtjob.api.spec.scheduling import GangProvider, Scheduling
from dtjob.controller.cluster import ClusterError, Refused
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import ended, facts_of
from tests.unit.operator import builders
from tests.unit.operator.queued import QUEUE, labelled
from tests.unit.operator.simulation.facts import Facts, told_to_end
from tests.unit.operator.simulation.operator import World
from tests.unit.operator.simulation.ruling import RULES

NAMES = ("digits", "digits-chief")
"""One begins with the name of another's pod."""
MAY_FAIL_ALONE = ("create Workload", "patch ", "repair ", "delete Pod")
"""Calls, by what their names begin with, for which no pod has to wait."""
STRATEGIES = ("Default", "MultiWorkerMirrored", "MultiWorkerMirrored", "ParameterServer")

SHARED_CLAIM = "shared"
"""Jobs of any name may mount it, each at a directory of its own or at the root."""
RETENTIONS = ("Retain", "Delete")
"""Of claims that the operator makes."""


@st.composite
def jobs(draw: st.DrawFn, name: str = "digits", uid: str = builders.JOB_UID, **wanted: Any) -> Job:
    """Any job, of which some may be `wanted` so: strategy, evaluator, program, volume, rules, elastic, queued."""
    strategy = wanted.get("strategy") or draw(st.sampled_from(STRATEGIES))
    claim = {"persistentVolumeClaim": {"claimName": draw(st.sampled_from((name, SHARED_CLAIM)))}}
    backoff = {"initialSeconds": draw(st.sampled_from((0, 10, 600))), "maxSeconds": draw(st.sampled_from((300, 900)))}
    volume: Any = wanted.get("volume") or draw(st.sampled_from((None, claim, *RETENTIONS, {"emptyDir": {}})))
    storage = {"volumeClaimTemplate": builders.CLAIM_TEMPLATE, "retention": volume}
    storage = storage if volume in RETENTIONS else {"volume": volume}
    if volume and draw(st.booleans()):
        storage["subPath"] = name
    more: dict[str, Any] = {"checkpoint": {"storage": storage}} if volume else {}
    program = draw(st.booleans()) if "program" not in wanted else wanted["program"]
    may_lack_a_chief = strategy == "MultiWorkerMirrored" or (strategy == "ParameterServer" and not program)
    evaluator = wanted.get("evaluator") or draw(st.booleans())
    if may_lack_a_chief and not (evaluator and volume) and draw(st.booleans()):
        more["successPolicy"] = "AllWorkers"
    rules = wanted["rules"] if "rules" in wanted else draw(st.lists(st.sampled_from(RULES), max_size=3))
    there = {"chief", "evaluator"} if evaluator else {"chief"}
    rules = [rule for rule in rules if there.issuperset(rule.get("roles", ()))]
    made = builders.job(
        strategy,
        workers=draw(st.integers(1, 3)),
        chief=not may_lack_a_chief or draw(st.booleans()),
        ps=draw(st.integers(1, 2)) if strategy == "ParameterServer" else 0,
        evaluator=evaluator,
        program=program,
        name=name,
        uid=uid,
        failurePolicy={
            "maxRestartsWithoutProgress": draw(st.integers(0, 4)),
            **({"stallTimeoutSeconds": 10} if draw(st.booleans()) else {}),
            "backoff": backoff,
            **({"rules": rules} if rules else {}),
        },
        cleanPodPolicy=draw(st.sampled_from(("Running", "All", "None"))),
        **more,
    )
    if draw(st.integers(0, 4)) == 4:
        gang = Scheduling.model_validate({"gang": {"provider": draw(st.sampled_from(list(GangProvider)))}})
        made = made.model_copy(update={"spec": made.spec.model_copy(update={"scheduling": gang})})
    if wanted.get("queued") or draw(st.integers(0, 3)) == 3:
        made = labelled(made, QUEUE)
    return elastic(made) if wanted.get("elastic") else made


def elastic(job: Job) -> Job:
    """The same with workers whose number may change, where it has any."""
    if job.spec.replica_specs.worker is None:
        return job
    bounds = ElasticPolicy(min_replicas=1, max_replicas=4)
    return job.model_copy(update={"spec": job.spec.model_copy(update={"elastic_policy": bounds})})


def with_sidecars(status: dict[str, Any], pod: Manifest) -> dict[str, Any]:
    """The status of a pod with containers beside ours: these run as long as the pod does, and come first."""
    others = [one["name"] for one in pod["spec"]["containers"] if one["name"] != "tensorflow"]
    if not (others and status.get("containerStatuses")):
        return status
    ended = status.get("phase") in ("Succeeded", "Failed")
    state = {"terminated": {"exitCode": 0}} if ended else {"running": {}}
    return {
        **status,
        "containerStatuses": [{"name": one, "state": state} for one in others] + status["containerStatuses"],
    }


class Stage(RuleBasedStateMachine):
    """The world and how it is looked at."""

    world: World

    @property
    def names(self) -> list[str]:
        """The jobs that are there."""
        return sorted(one["metadata"]["name"] for one in self.world.cluster.of_kind(KIND))

    def status(self, name: str) -> dict[str, Any]:
        """A job's status as it is stored."""
        return self.world.cluster.objects[KIND, name].get("status") or {}

    def uid(self, name: str) -> str:
        """A job's uid."""
        return str(self.world.cluster.objects[KIND, name]["metadata"]["uid"])

    def goes_on(self, name: str) -> bool:
        """Whether the job is there and has not ended."""
        return name in self.names and self.status(name).get("phase") not in ENDED

    def facts(self, pod: str) -> Facts:
        """What a pod of ours, by its name, was made as."""
        return self.world.cluster.facts[self.world.pods[pod]["metadata"]["uid"]]

    def pods(self, wanted: Callable[[Manifest], Any] = lambda one: True) -> list[str]:
        """Names of the pods that the operator has made, of any job, but for those that only keep a place."""
        known = {uid for uid, facts in self.world.cluster.facts.items() if not facts.keeps_a_place}
        return sorted(name for name, one in self.world.pods.items() if one["metadata"]["uid"] in known and wanted(one))

    def placeholders(self) -> list[str]:
        """Names of those that only keep a place."""
        facts = self.world.cluster.facts
        uids = ((name, one["metadata"]["uid"]) for name, one in self.world.pods.items())
        return sorted(name for name, uid in uids if uid in facts and facts[uid].keeps_a_place)

    def alive(self) -> list[str]:
        """Names of those that have not ended."""
        return self.pods(lambda one: not ended(one))

    def answering(self) -> list[str]:
        """Names of those that have not ended, on nodes that answer."""
        lost = self.world.cluster.lost
        return self.pods(lambda one: not ended(one) and one["metadata"]["uid"] not in lost)

    def refuse(self, call: str, down: bool) -> None:
        """Calls that begin with this fail from now on."""
        error = ClusterError("failed calling webhook: connection refused") if down else Refused("denied the request")
        self.world.cluster.refusing[call] = error

    def set_status(self, pod: str, status: dict[str, Any]) -> None:
        """A kubelet writes a pod's status; its address and what was done to it stay."""
        before = self.world.pods[pod].get("status") or {}
        kept = {"podIP": "10.0.0.1"}
        if before.get("conditions") and "conditions" not in status:
            kept["conditions"] = before["conditions"]
        changed = with_sidecars({**deepcopy(status), **kept}, self.world.pods[pod])
        self.world.cluster.change("Pod", pod, lambda one: one.update(status=changed))

    def waiting(self) -> list[str]:
        """Names of pods that do not run yet, on nodes that answer."""
        starting = self.pods(lambda one: not facts_of(one).runs and not told_to_end(one))
        return [name for name in starting if name in self.answering()]

    def all_run(self) -> None:
        """Every pod that can runs."""
        for name in self.waiting():
            self.set_status(name, builders.running())
