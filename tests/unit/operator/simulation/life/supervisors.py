# SPDX-License-Identifier: Apache-2.0
"""What supervisors tell: steps and checkpoints, NaN, and whatever a tenant's image may answer instead."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from dtjob import times
from dtjob.kube.endpoints.reports import supervisors_to_ask
from dtjob.plan.seen.report import read_report
from tests.unit.operator.simulation.life.stage import Stage

NAN, INFINITE = float("nan"), float("inf")
MATRIX = [[0] * 300 for _ in range(300)]


def nested(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


DIVERGED: tuple[dict[str, Any], ...] = (
    {"loss": NAN, "metrics": {"accuracy": NAN}},
    {"loss": INFINITE, "stepsPerSecond": INFINITE, "etaSeconds": INFINITE},
)
HOSTILE: tuple[dict[str, Any], ...] = (
    {"metrics": {"confusion": MATRIX}},
    {"metrics": {f"metric-{number}": number for number in range(20_000)}},
    {"model": "x" * 200_000},
    {"evaluation": {"step": 1, "metrics": {"confusion": MATRIX}}},
    {"checkpoint": {"step": 1, "files": ["x" * 200_000]}},
    {"checkpoint": {"step": 1, "time": 5}},
    {"checkpoint": {"step": 1, "time": "yesterday"}},
    {"checkpoint": {"step": 1.5}},
    {"checkpoint": [1]},
    {"checkpoint": {"step": NAN}},
    {"step": "12"},
    {"step": 1.5},
    {"step": True},
    {"step": 10**400},
    {"totalSteps": 0.1},
    {"totalSteps": -1},
    {"etaSeconds": 1e308},
    {"etaSeconds": 10**400},
    {"metrics": nested(400)},
    {"metrics": nested(900)},
    {"metrics": "none", "epoch": [1], "resume": {"exact": False}, "model": 5},
    {"evaluation": {"step": "1"}},
    {"spent": {"from": 7, "keptSteps": 10**9, "kept": 1e9, "redoneSteps": 5, "redone": 1e9, "saving": 1e9}},
    {"spent": {"from": "0", "keptSteps": -1, "kept": NAN, "redone": -5, "saving": [1]}},
)


class Supervisors(Stage):
    """The answers to `/status`."""

    def ask(self, task: str, more: dict[str, Any], steps: int, saves: bool) -> None:
        """Ask the supervisors of this role in all jobs, as the operator's poll does; each has trained on since."""
        store, rules = self.world.store, self.world.cluster.rules
        for supervisor in supervisors_to_ask(store):
            key, asked = supervisor.job, supervisor.task
            manifest = store.job(key)
            facts = [self.facts(name) for name in self.answering()]
            found = [
                one for one in facts if manifest and (one.job_uid, one.task) == (manifest["metadata"]["uid"], asked)
            ]
            if manifest is None or not found or not asked.startswith(task):
                continue
            newest = max(found, key=lambda one: one.attempt)
            saved = rules.saved.get(newest.directory, -1)
            step = max(saved, 0) + steps
            if saves and "checkpoint" in manifest["spec"]:
                saved = rules.saved[newest.directory] = step
            told = {"task": asked, "attempt": newest.attempt, "jobUid": newest.job_uid, "state": "training"}
            told |= {"step": step, "totalSteps": 10_000, "loss": 0.5, "metrics": {"accuracy": 0.5}}
            told["spent"] = {
                "from": 0,
                "keptSteps": step,
                "kept": 0.1 * step,
                "redoneSteps": 0,
                "redone": 0,
                "saving": 1,
            }
            if saved >= 0:
                told["checkpoint"] = {"step": saved, "time": times.rfc3339(self.world.now())}
            claimed = more.get("checkpoint")
            if asked != "evaluator-0" and isinstance(claimed, dict) and type(claimed.get("step")) is int:
                rules.saved[newest.directory] = max(saved, claimed["step"])  # nobody can tell that it is not there
            if self.world.store.set_report(key, asked, read_report(told | more)):
                self.world.queue.add(key)

    @rule(steps=st.integers(0, 100), saves=st.booleans())
    def chiefs_tell_how_far_they_are(self, steps: int, saves: bool) -> None:
        self.ask("", {}, steps, saves)

    @rule(more=st.sampled_from(DIVERGED))
    def training_diverges(self, more: dict[str, Any]) -> None:
        self.ask("", more, 1, False)

    @rule(number=st.sampled_from(range(len(HOSTILE))), task=st.sampled_from(("", "evaluator")))
    def images_tell_anything(self, number: int, task: str) -> None:
        """By its number: a failing life is printed, and some of these have 90,000 lines."""
        self.ask(task, HOSTILE[number], 1, False)
