# SPDX-License-Identifier: Apache-2.0
"""What must hold of the operator at every single call, whatever happened before."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError

from dtjob.api.job import KIND, Job
from dtjob.api.phase import ENDED
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.scheduling import GangProvider
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.restarts import Restarts
from dtjob.api.status.status import Status
from dtjob.objects import gangs, labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.objects.topology import chief_task, evaluator_follows_chief
from dtjob.plan.actions import Event
from dtjob.plan.record.status import ALWAYS_THERE, running_since
from dtjob.plan.seen.children import ended, facts_of
from tests.unit.operator import documented
from tests.unit.operator.phase_said import phase_said_by
from tests.unit.operator.simulation.accounting import Accounts
from tests.unit.operator.simulation.facts import (
    AllFacts,
    Facts,
    attempt_of,
    directory_named,
    is_suspended,
    sized_job,
    told_to_end,
)
from tests.unit.operator.simulation.told import check_story, check_time_spent

Objects = Mapping[tuple[str, str], Manifest]
PROMISE = re.compile(r"from the checkpoint at step (\d+)")
HEARD_WITHIN = timedelta(seconds=0.2)
"""So long after an end or a change the operator may still do what was decided before that was heard of."""
RAN_FOR_A_WHILE = timedelta(seconds=42)
"""So long after all tasks have run again an incident is over at the latest. Times in the status are whole seconds."""
FAILED_WITHIN = timedelta(minutes=10)
"""So long after calls have failed for some time, a pod may still live beside its successor."""
REFUSED_AT_MOST, IN_SECONDS = 3, 10
"""So often may one object be asked for in vain in that time."""


class Rules:
    """Raises AssertionError at the call that breaks a rule. Also counts, for tests that compare with what they did."""

    def __init__(self, objects: Objects, facts: AllFacts, strict: bool) -> None:
        self._objects, self._facts, self.strict = objects, facts, strict
        self.accounts = Accounts()
        self.restarts_written: Counter[str] = Counter()
        """Restarts that statuses count: of `training` and of the `evaluator`."""
        self.restarts_untold: Counter[str] = Counter()
        """Those of them after which the operator died at once."""
        self.forged: dict[str, tuple[datetime, dict[str, Any]]] = {}
        """When somebody last forged the status of a job, and what it said before, by job uid. What the statuses
        of these jobs count is not true any more."""
        self.saved: dict[str, int] = {}
        """The newest checkpoint by directory (`Facts.directory`)."""
        self.tampered: set[str] = set()
        """Uids of pods whose labels somebody has edited: the operator may see them late, or not at all."""
        self._failed_at = datetime.min.replace(tzinfo=UTC)
        """When calls failed last that fail for some time."""
        self._refused: dict[str, list[datetime]] = defaultdict(list)
        self._gone: dict[str, tuple[datetime, Manifest]] = {}
        """When a job or a PodGroup went, and how it was then."""
        self._unheard: set[str] = set()
        """What went while the watch was lost: only a LIST tells of that."""
        self.watches = True

    def is_forged(self, uid: str, before: dict[str, Any], now: datetime) -> None:
        """Somebody has forged the status of a job."""
        self.forged[uid] = now, before

    def is_gone(self, one: Manifest, now: datetime) -> None:
        """Somebody has deleted a job or a PodGroup."""
        self._gone[_uid(one)] = now, one
        if not self.watches:
            self._unheard.add(_uid(one))

    def gang_is_released(self, uid: str) -> None:
        """The operator has deleted a PodGroup. It need not hear of that."""
        self._gone.pop(uid, None)

    def watch_is_lost(self, on_their_way: Iterable[str]) -> None:
        """Of nothing that goes from now on the operator hears, nor of these uids, which have gone just now."""
        self.watches = False
        self._unheard.update(on_their_way)

    def listed(self, now: datetime, jobs: bool) -> None:
        """The operator has listed what is there, with `jobs` or without: it knows of all that went before."""
        heard = {uid: (now, self._gone[uid][1]) for uid in self._unheard & self._gone.keys()}
        heard = {uid: found for uid, found in heard.items() if jobs or found[1]["kind"] != KIND}
        self._gone |= heard
        self._unheard -= heard.keys()

    def check_create(self, manifest: Manifest, now: datetime) -> None:
        """Only for a job that is there, or of whose end the watch (or, once it was lost, a resync) has yet to tell, and
        that has not ended, and only the attempt that its status names already."""
        job = self.owner(manifest)
        if job is None:
            self._unheard_of(manifest, now)  # Kubernetes collects what is made for it
            return
        status = job.get("status") or {}
        name = manifest["metadata"]["name"]
        # A job that is suspended since it waits in a queue has the entry by which it is admitted.
        assert not is_suspended(status) or manifest["kind"] == "Workload", f"a suspended job created {name}"
        # The evaluator of a run that has succeeded may still have to look at its last checkpoint.
        if manifest["kind"] != "Pod":
            needed = status.get("phase") == "Succeeded" and "evaluator" in job["spec"]["replicaSpecs"]
            assert needed or status.get("phase") not in ENDED, f"an ended job created {name}"
            return
        made = Facts.of(manifest)
        self._check_gang(manifest, now)
        if made.keeps_a_place:
            assert status.get("phase") == "Running", f"{name} is made for a job that does not train"
            return
        self._check_group(job, made, name)
        ended_for_it = status.get("phase") in (ENDED if made.task != "evaluator-0" else ("Failed",))
        assert not ended_for_it, f"an ended job created {name}"
        forged_at, before = self.forged.get(made.job_uid, (now, status))
        said = [status, before] if now - forged_at <= HEARD_WITHIN else [status]
        assert made.attempt in {attempt_of(one, made.task) for one in said}, f"{name} is not written ahead"
        chief = chief_task(Job.model_validate(job)).id
        if affinity := manifest["spec"].get("affinity"):
            (term,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            follows = term["labelSelector"]["matchLabels"][labels.ATTEMPT]
            assert int(follows) in {attempt_of(one, chief) for one in said}, "the evaluator follows an earlier chief"
        self._check_alone(made, now)
        if made.task == chief:
            self._check_writers(made)
        if made.task == chief or made.claim is not None:
            _check_directory(job, made)
        for one, facts in self._pods(made.job_name, made.job_uid):
            resolves = facts.task == made.task and labels.SERVING in labels.of(one) and not _dns_gone(one)
            assert not resolves or _uid(one) in self.tampered, (
                f"{one['metadata']['name']} still has the host name of {name}"
            )

    def _check_gang(self, pod: Manifest, now: datetime) -> None:
        """A pod is made only when the PodGroup is there that it is a member of, or when the operator has not heard yet
        that somebody has deleted that."""
        metadata = pod["metadata"]
        groups = {
            GangProvider.KUBERNETES: (pod["spec"].get("schedulingGroup") or {}).get("podGroupName"),
            GangProvider.VOLCANO: (metadata.get("annotations") or {}).get(gangs.VOLCANO_GROUP),
            GangProvider.COSCHEDULING: labels.of(pod).get(gangs.COSCHEDULING_GROUP),
        }
        for provider, group in groups.items():
            key = gangs.KINDS[provider], group
            there = group is None or key in self._objects or key in self._thought_there(_made_for(pod), now)
            assert there, f"{metadata['name']} is made before its gang"

    def _check_group(self, job: Manifest, made: Facts, name: str) -> None:
        """No pod of one group trains beside those of another."""
        written = (job.get("status") or {}).get("workers")
        if written is None or made.task == "evaluator-0":
            return
        assert "resizing" not in written, f"{name} is made while its group ends"
        for one, facts in self._pods(made.job_name, made.job_uid):
            trains = not (facts.task == "evaluator-0" or facts.keeps_a_place or ended(one) or told_to_end(one))
            if _uid(one) in self.tampered:
                continue
            assert not trains or facts.group == made.group, f"{one['metadata']['name']} of another group trains"

    def _check_alone(self, made: Facts, now: datetime) -> None:
        """No other pod of the task lives, but those being deleted. While calls fail, and soon after, it may."""
        if made.job_uid in self.forged or now - self._failed_at <= FAILED_WITHIN:
            return
        for one, facts in self._pods(made.job_name, made.job_uid):
            lives = not (facts.keeps_a_place or ended(one) or "deletionTimestamp" in one["metadata"])
            alone = facts.task != made.task or not lives or _uid(one) in self.tampered
            assert alone, f"{one['metadata']['name']} lives on beside its successor"

    def _check_writers(self, made: Facts) -> None:
        """No other pod that has not ended is the chief of this job, or writes the same directory."""
        for one, facts in self._pods(made.job_name):
            if facts.task != made.task or ended(one):
                continue
            name, hidden = one["metadata"]["name"], _uid(one) in self.tampered
            if facts.job_uid == made.job_uid:
                overlooked = hidden and not self.strict
                assert overlooked, f"the chief task has two pods that have not ended, {name} is there"
            elif facts.claim is not None and facts.claim == made.claim and not hidden:
                assert not self.strict, f"{name} of the job before still writes to {made.claim}"

    def check_touch(self, stored: Manifest, now: datetime) -> None:
        """Only what the job owns, and of a job that goes on only what has a successor; an ended job itself, where it
        says for how long it stays. A job of whose end the operator has not heard is judged by its last status."""
        if stored["kind"] == KIND:
            assert (stored.get("status") or {}).get("phase") in ENDED, "a job that goes on is deleted"
            return
        job = self.owner(stored) or self._unheard_of(stored, now)
        status = job.get("status") or {}
        if stored["kind"] == "Pod" and status.get("phase") not in ENDED and not is_suspended(status):
            facts = self._facts[stored["metadata"]["uid"]]
            if facts.keeps_a_place or "resizing" in (status.get("workers") or {}):
                return
            current = attempt_of(status, facts.task)
            lost = labels.JOB_NAME not in labels.of(stored)
            assert facts.attempt < current or lost, f"{stored['metadata']['name']} is the current attempt"

    def check_status(self, job: Manifest, new: dict[str, Any], now: datetime) -> None:
        """Attempts and counts only grow, each restart is counted once, and an end is an end."""
        old = job.get("status") or {}
        self._note_restarts(old, new)
        check_conditions(new)
        self._check_success(job, old, new)
        if job["metadata"]["uid"] in self.forged:
            return
        check_time_spent(old, new)
        check_story(old, new)
        if old.get("phase") in ENDED:
            kept = ("phase", "reason", "message", "completionTime", "lastFailure", "incidents")
            assert {name: old.get(name) for name in kept} == {name: new.get(name) for name in kept}
            assert _but_the_evaluator(old) == _but_the_evaluator(new)
            return
        try:
            model = Job.model_validate(job)
        except ValidationError:
            return  # of a job that cannot be read only that is said
        ids = {task.id for status in (old, new) for task in topology.tasks(sized_job(model, status))}
        if _is_resized(old, new):
            _check_resize(old, new, ids - {"evaluator-0"})
            return
        bumped = {task: attempt_of(new, task) - attempt_of(old, task) for task in ids}
        assert set(bumped.values()) <= {0, 1}, f"attempts {bumped}"
        if is_suspended(old) or is_suspended(new):
            _check_free(old, new, bumped)
            return
        replaced = {task for task, step in bumped.items() if step and task != "evaluator-0"}
        self._check_counts(old, new, replaced, self._ended_well(job, old), now)
        self._check_evaluator(model, old, new, bumped)
        pods = self._pods(model.metadata.name, model.metadata.uid)
        self.accounts.check(sized_job(model, old), old, new, pods, self.strict)

    def _note_restarts(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        before, after = ((status.get("restarts") or {}) for status in (old, new))
        for kind, name in (("training", "total"), ("evaluator", "evaluator")):
            self.restarts_written[kind] += max(0, after.get(name, 0) - before.get(name, 0))

    def _check_success(self, job: Manifest, old: dict[str, Any], new: dict[str, Any]) -> None:
        """success-is-true: No job succeeds while a task runs that decides its success, whatever its status said."""
        if new.get("phase") != "Succeeded" or old.get("phase") in ENDED:
            return
        model = sized_job(Job.model_validate(job))
        all_decide = model.spec.success_policy == "AllWorkers"
        decide = {one.id for one in topology.tasks(model) if all_decide and one.role is Role.WORKER}
        decide |= {chief_task(model).id}
        for one, facts in self._pods(model.metadata.name, model.metadata.uid):
            runs = facts_of(one).runs and not ended(one) and _uid(one) not in self.tampered
            current = facts.attempt == attempt_of(old, facts.task)
            assert not (runs and current and facts.task in decide), f"the job succeeds, and {facts.task} runs"

    def _ended_well(self, job: Manifest, status: dict[str, Any]) -> set[str]:
        pods = self._pods(job["metadata"]["name"], job["metadata"]["uid"])
        current = [(one, facts) for one, facts in pods if facts.attempt == attempt_of(status, facts.task)]
        return {facts.task for one, facts in current if (facts_of(one).end or {}).get("exitCode") == 0}

    def _check_evaluator(self, job: Job, old: dict[str, Any], new: dict[str, Any], bumped: dict[str, int]) -> None:
        """Its own failures are counted; where it only follows the chief, with whom it shares a volume, nothing is."""
        counted = [(status.get("restarts") or {}).get("evaluator", 0) for status in (old, new)]
        step, replaced = counted[1] - counted[0], bumped.get("evaluator-0", 0)
        if step != replaced:
            # It goes where the chief goes, and leaves it where that has ended.
            moved = bool(bumped.get(chief_task(job).id)) or new.get("phase") == "Succeeded"
            follows = moved and evaluator_follows_chief(job)
            assert (follows, step, replaced) == (True, 0, 1), "an evaluator's restart is not counted"

    def _check_counts(
        self, old: dict[str, Any], new: dict[str, Any], replaced: set[str], well: set[str], now: datetime
    ) -> None:
        """`replaced` are training tasks. Those that ended `well` and only come back since the chief does may do so at
        any time, uncounted."""
        before, after = old.get("restarts") or {}, new.get("restarts") or {}
        step = after.get("total", 0) - before.get("total", 0)
        assert after.get("total", 0) == sum(after.get("causes", {}).values())
        assert step in (0, 1)
        assert not step or replaced, "a restart was counted and none was written ahead"
        if replaced - well and not step:
            _check_goes_on(old, replaced - well, now)

    def check_event(self, job: Manifest, event: Event) -> None:
        """An event promises no checkpoint that is not held any more, and its reason is on a page."""
        documented.check_event(event)
        if (promise := PROMISE.search(event.message)) is None or not self.strict:
            return
        stored = self._objects.get((KIND, job["metadata"]["name"]))
        if stored is None or stored["metadata"]["uid"] != job["metadata"]["uid"]:
            return
        chief = chief_task(Job.model_validate(stored)).id
        attempt = attempt_of(stored.get("status") or {}, chief)
        pods = [facts for facts in self._facts.values() if (facts.job_uid, facts.task) == (_uid(stored), chief)]
        held = [self.saved.get(facts.directory, -1) for facts in pods if facts.claim or facts.attempt == attempt]
        assert int(promise[1]) <= max(held, default=-1), f"nothing holds that: {event.message}"

    def refused(self, what: str, now: datetime) -> None:
        """A create was refused: it is not to be repeated at once, and again."""
        recent = [one for one in self._refused[what] if now - one < timedelta(seconds=IN_SECONDS)]
        self._refused[what] = [*recent, now]
        if self.strict:
            assert len(recent) < REFUSED_AT_MOST, f"{what} is refused for the {len(recent) + 1}th time in a short while"

    def calls_fail(self, now: datetime) -> None:
        """Note that some calls fail now, and that not only one of them does."""
        self._failed_at = now

    def operator_restarted(self) -> None:
        """A new process knows nothing of what was refused."""
        self._refused.clear()

    def owner(self, manifest: Manifest) -> Manifest | None:
        """The job that controls the object, or a claim's, where it is there."""
        name = labels.controlling_job(manifest) or labels.of(manifest).get(labels.JOB_NAME, "")
        job = self._objects.get((KIND, name))
        return job if job is not None and _uid(job) == _made_for(manifest) else None

    def _unheard_of(self, manifest: Manifest, now: datetime) -> Manifest:
        """The job that controlled the object, as it was last. It is gone, and the operator need not know of that."""
        uid, what = _made_for(manifest), f"{manifest['kind']} {manifest['metadata']['name']}"
        assert uid in self._gone, f"{what} is not ours"
        went, job = self._gone[uid]
        assert self._is_unheard(uid, now), f"{what} is of a job that is gone for {now - went}"
        return job

    def _thought_there(self, job_uid: str, now: datetime) -> set[tuple[str, str]]:
        """Kind and name of the PodGroups of a job that somebody has deleted, and the operator need not know of that."""
        gone = (one for uid, (_, one) in self._gone.items() if self._is_unheard(uid, now))
        return {(one["kind"], one["metadata"]["name"]) for one in gone if _made_for(one) == job_uid}

    def _is_unheard(self, uid: str, now: datetime) -> bool:
        """Whether the operator need not know yet that this is gone."""
        return uid in self._unheard or now - self._gone[uid][0] <= HEARD_WITHIN

    def _pods(self, job_name: str, job_uid: str | None = None) -> list[tuple[Manifest, Facts]]:
        """Pods that are there of jobs of this name, or of the one of them with this uid."""
        named = ((uid, self._objects.get(("Pod", name))) for uid, name in self._facts.names(job_name).items())
        there = [(one, self._facts[uid]) for uid, one in named if one is not None and _uid(one) == uid]
        return [(one, facts) for one, facts in there if job_uid in (None, facts.job_uid)]


def _check_directory(job: Manifest, made: Facts) -> None:
    """The pod mounts the directory of the claim that its job names, so that no other job's pods write there unless
    that job names the same one."""
    found, named = (made.claim, made.sub_path), directory_named(job)
    assert found == named, f"{made.task} keeps its checkpoints in {found}, and its job names {named}"


def check_conditions(status: dict[str, Any]) -> None:
    """The phase follows from the conditions, of which some are always there, and nothing is longer than may be."""
    read = Status.read(status)
    assert read.to_json() == status, "what is written is read otherwise"
    assert phase_said_by(read.conditions) == (read.phase, read.reason, read.message), f"{status} contradicts itself"
    assert {one.type for one in read.conditions} >= set(ALWAYS_THERE)
    documented.check_status(status)


def _check_free(old: dict[str, Any], new: dict[str, Any], bumped: dict[str, int]) -> None:
    """Suspending, being suspended and going on count nothing and charge nothing; a job that goes on gets new pods.

    As it goes on it may show what the incident before the suspension came of. Then its cause changes and nothing else.
    """
    before, after = Status.read(old), Status.read(new)
    totals = [(one.restarts.total, one.restarts.evaluator) for one in (before, after)]
    assert totals[0] == totals[1], f"suspension counted {totals}"
    began = [incident.started_at if (incident := one.internal.incident) else None for one in (before, after)]
    assert began[0] == began[1], "suspension began an incident"
    if is_suspended(new):
        assert set(bumped.values()) <= {0}, "a suspended job starts tasks anew"
        assert before.restarts == after.restarts, "suspension changed a cause"
        assert before.last_failure == after.last_failure, "suspension is a failure"
        assert before.internal.incident == after.internal.incident, "suspension changed the incident"


def _is_resized(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether a group of another number of workers begins, or one that was to."""
    before, after = old.get("workers") or {}, new.get("workers") or {}
    return "lastScaleTime" in after and after.get("lastScaleTime") != before.get("lastScaleTime")


def _check_resize(old: dict[str, Any], new: dict[str, Any], ids: set[str]) -> None:
    """All pods are new ones, and nothing is counted."""
    assert all(attempt_of(new, id_) > attempt_of(old, id_) for id_ in ids), "a task of two groups has one attempt"
    before, after = Status.read(old), Status.read(new)
    assert (before.restarts, before.internal.incident) == (after.restarts, after.internal.incident), (
        "a resize is counted"
    )
    assert before.last_failure == after.last_failure, "a resize is a failure"


def _check_goes_on(old: dict[str, Any], replaced: set[str], now: datetime) -> None:
    """What is replaced and not counted failed in an incident that goes on: not all tasks have run for a while since,
    and some task was at this attempt when it began."""
    status = Status.read(old)
    incident, since = status.internal.incident, running_since(status.conditions)
    assert incident is not None, "a restart was not counted"
    assert any(status.internal.attempts.of(task) <= incident.attempts.of(task) for task in replaced), (
        f"{replaced} have failed again, and that was not counted"
    )
    ran = timedelta(0) if since is None else now - max(since, incident.not_before)
    assert ran <= RAN_FOR_A_WHILE, f"a restart was not counted after all had run for {ran}"


def _but_the_evaluator(status: dict[str, Any]) -> tuple[Restarts, Attempts]:
    read = Status.read(status)
    attempts = read.internal.attempts
    others = {name: attempt for name, attempt in attempts.exceptions.items() if name != "evaluator-0"}
    return read.restarts.but(evaluator=0), attempts.but(exceptions=others)


def _made_for(manifest: Manifest) -> str:
    """The uid of the job that controls the object. A claim that is retained has only its label."""
    return labels.controller_uid(manifest) or labels.of(manifest).get(labels.JOB_UID, "")


def _uid(manifest: Manifest) -> str:
    return str(manifest["metadata"]["uid"])


def _dns_gone(pod: Manifest) -> bool:
    """Whether no EndpointSlice lists the pod any more: its phase says so, not its training container."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
