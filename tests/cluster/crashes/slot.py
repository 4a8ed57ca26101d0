# SPDX-License-Identifier: Apache-2.0
"""A slot: one namespace, and an operator for it alone that reaches the API server through a proxy. Lives are played in
it, one after the other or side by side."""

import contextlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from dtjob.api.job import PLURAL
from tests.cluster.crashes.faults import BY_KOPF, KILLS, LAG, Step, What, step_of, verdict
from tests.cluster.crashes.observer import Observer
from tests.cluster.crashes.outcome import OF_CALLS, Outcome, differences, of_status
from tests.cluster.crashes.stories import STORIES, Life
from tests.cluster.support.api_proxy import ApiProxy, AsOf, Call, Verdict, Watched
from tests.cluster.support.forked_operator import ForkedOperator, Template
from tests.cluster.support.kubelet import Kubelet
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, path_of

EVENTS_WITHIN = 30.0
"""Seconds within which all events of a job are recorded: a call that fails is tried again, and others wait."""
_numbers = itertools.count()


@dataclass
class Played:
    """One life: its story, what befell which step (None: nothing), and what came of it.

    `steps`: all its steps, and those of the operator. `struck`: whether that has happened. `wrong`: what must not be.
    """

    story: str
    step: Step | None = None
    what: What | None = None
    name: str = field(default_factory=lambda: f"life{next(_numbers)}")
    struck: bool = False
    steps: list[Step] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.story}: {self.step}: {self.what}"


class Slot:
    """To be entered. `play` is for one thread at a time."""

    def __init__(self, cluster: ControlPlane, template: Template, directory: Path) -> None:
        self._cluster, self._template, self._directory = cluster, template, directory
        self._stack = ExitStack()
        self._lock = threading.Lock()

    def __enter__(self) -> "Slot":
        self._api = Api(self._cluster.kubeconfig)
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "lives-"}}
        self.namespace: str = self._api.create("namespaces", None, manifest)["metadata"]["name"]
        self._api.wait_for("serviceaccounts", self.namespace, "default", lambda found: found is not None)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._proxy = self._stack.enter_context(ApiProxy(self._cluster.kubeconfig, self._directory))
        self._kubelet = self._stack.enter_context(Kubelet(Api(self._cluster.kubeconfig), self.namespace, auto=True))
        self._observer = self._stack.enter_context(Observer(Api(self._cluster.kubeconfig), self.namespace))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def play(self, lives: Sequence[Played], wanted: dict[str, Outcome]) -> None:
        """Play these lives side by side under one operator. `wanted`: what each story comes to undisturbed."""
        log = self._directory / f"{lives[0].name}.log"
        self._operator = ForkedOperator(self._template, self._proxy.kubeconfig, self.namespace, log, resync_seconds=5)
        self._lives = {life.name: life for life in lives}
        self._counts: Counter[tuple[str, Step]] = Counter()
        self._watches: list[tuple[Step, Watched]] = []
        self._aimed: list[tuple[Played, Watched]] = []
        self._stale: dict[str, str] = {}
        self._proxy.calls.clear()
        self._proxy.rule = self._rule
        self._operator.start()
        try:
            with ThreadPoolExecutor(len(lives)) as pool:
                list(pool.map(lambda life: self._live(life, wanted), lives))
        finally:
            self._proxy.rule = lambda call: None
            with self._lock:
                self._operator.kill()
        for life, watched in self._aimed:
            life.struck = watched.struck  # the watch began, and the event may not have come
        for life in lives:
            life.steps += [replace(step, event=n) for step, watched in self._watches for n in range(watched.events)]
            if "a bug in dtjob" in log.read_text():
                life.wrong.append("the operator's log tells of a bug in dtjob")
            if life.wrong:
                life.wrong.append(f"log: {log}")
        if not any(life.wrong for life in lives):
            log.unlink()

    def _live(self, played: Played, wanted: dict[str, Outcome]) -> None:
        """Play one of them, and see what came of it."""
        life = Life(self._api, self.namespace, played.name, self._kubelet, self._observer)
        try:
            STORIES[played.story](life)
            self._end(played, life, wanted.get(played.story))
        except Exception as error:
            said = of_status(life.found())
            played.wrong.append(f"{type(error).__name__}: {error}; {said}; pods {sorted(life.pods)}")
            with contextlib.suppress(Exception):
                life.delete()
        played.wrong += self._observer.broken.pop(played.name, [])

    def _end(self, played: Played, life: Life, wanted: Outcome | None) -> None:
        """Take down what it came to, delete the job, and see that nothing is left of it."""
        played.outcome.status = of_status(self._observer.last[life.name])
        limit = time.monotonic() + (EVENTS_WITHIN if wanted is not None else 3.0)
        while True:
            played.outcome.events = self._events(life.uids)
            complete = wanted is not None and not wanted.events - played.outcome.events
            if complete or time.monotonic() > limit or (wanted is not None and played.what in KILLS):
                break
            time.sleep(0.2)
        if life.found() is not None:
            life.delete()
        life.nothing_left()
        played.outcome.events |= self._events(life.uids)  # what a new operator has told meanwhile
        played.outcome.made = self._made(played.name)
        if wanted is not None:
            played.wrong += differences(played.outcome, wanted, played.what)

    def _events(self, uids: list[str]) -> Counter[str]:
        """How often each decision was told of."""
        counted: Counter[str] = Counter()
        for uid in uids:
            query = {"fieldSelector": f"involvedObject.uid={uid}"}
            for one in self._api.call("GET", path_of("events", self.namespace), None, query)["items"]:
                if one["reason"] not in OF_CALLS:
                    counted[one["reason"]] += one["count"]
        return counted

    def _made(self, job: str) -> Counter[tuple[str, str]]:
        """What was made for this job: pods as the observer has seen them, and the rest as it was answered."""
        answered = [(step_of(call), status) for call, status in list(self._proxy.calls)]
        made = Counter(
            (step.resource, step.name)
            for (owner, step), status in answered
            if owner == job and step.method == "POST" and status == 201 and step.resource not in ("events", "pods")
        )
        for name, uids in list(self._observer.made.items()):
            if name.startswith(f"{job}-"):
                made["pods", name.removeprefix(f"{job}-")] = len(uids)
        return made

    def _rule(self, call: Call) -> Verdict:
        """What becomes of a call: its step is noted, and what is to befall it does."""
        job, step = step_of(call)
        self._counts[job, step] += 1
        step = Step(step.method, step.resource, step.name, step.job, self._counts[job, step])
        for life in self._lives.values():
            if job in ("", life.name):
                life.steps.append(step)
                aim = life.step
                if aim is None or life.what is None or life.struck or replace(aim, event=-1) != step:
                    continue
                life.struck = True
                found = verdict(life.what, aim, lambda what=life.what: self._kill(what))
                if isinstance(found, Watched):
                    self._watches.append((step, found))
                    self._aimed.append((life, found))
                return found
        if step.method == "LIST" and (version := self._stale.pop(step.resource, None)):
            return AsOf(version)
        if step.method == "WATCH":
            watched = Watched()
            self._watches.append((step, watched))
            return watched
        return None

    def _kill(self, what: What) -> None:
        with self._lock:
            self._operator.kill()
            version = str(sorted(self._observer.versions)[-LAG - 1 :][0])
            jobs = {PLURAL, PLURAL + BY_KOPF}
            lists = {step.resource for _, step in self._counts if step.method == "LIST"}
            others = {one for one in lists - jobs if not one.startswith("/")}  # what is served is no list of objects
            for resource in {What.STALE_JOBS: jobs, What.STALE_OTHERS: others}.get(what, set[str]()):
                self._stale[resource] = version
            self._operator.start()


@contextlib.contextmanager
def slots(cluster: ControlPlane, directory: Path, count: int) -> Iterator[list[Slot]]:
    """So many slots on one API server."""
    with Template() as template, ExitStack() as stack:
        yield [stack.enter_context(Slot(cluster, template, directory / str(n))) for n in range(count)]
