# SPDX-License-Identifier: Apache-2.0
"""Whom the operator asks for reports, and which answers it believes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from dtjob.api.job import Job
from dtjob.controller.cluster import JobKey
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.endpoints import reports
from dtjob.kube.endpoints.endpoint import serving
from dtjob.local.processes.addresses import free_ports
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import Silence
from dtjob.status_client import NoStatus
from tests.unit.operator import builders
from tests.unit.operator.kube.waiting import going_on, until
from tests.unit.operator.simulation.operator import job_manifest
from tests.unit.operator.simulation.time import simulated

KEY = ("default", "digits")


def stored(job: Job, *, host: str = "10.0.0.7", **pods: Manifest) -> Store:
    """What is known of a job whose pods run, each at this address. `pods` takes the place of those of its tasks."""
    store = Store()
    manifest = job_manifest(job)
    manifest["metadata"]["resourceVersion"] = "1"
    store.apply({**manifest, "status": job.status})
    for task_id, pod in {**builders.all_pods(job), **pods}.items():
        pod["metadata"]["uid"] = task_id
        pod["status"].setdefault("podIP", host)
        store.apply(pod)
    return store


@asynccontextmanager
async def polling(made: reports.Reports) -> AsyncIterator[None]:
    """Supervisors are asked meanwhile, for as long as a test may take."""
    async with asyncio.timeout(20), going_on(made.poll_forever()):
        yield


def asked(store: Store) -> dict[str, str]:
    return {one.task: one.address for one in reports.supervisors_to_ask(store)}


def test_the_chief_and_the_evaluator_are_asked() -> None:
    assert asked(stored(builders.job(evaluator=True, network={"statusPort": 3001}))) == {
        "chief-0": "10.0.0.7:3001",
        "evaluator-0": "10.0.0.7:3001",
    }
    assert list(asked(stored(builders.job(chief=False)))) == ["worker-0"]


def test_an_address_of_ipv6_is_written_as_urls_have_it() -> None:
    assert asked(stored(builders.job(), host="fd00::7"))["chief-0"] == "[fd00::7]:2223"


@pytest.mark.parametrize(
    "job",
    [
        builders.job(program=False),
        builders.job(status={"phase": "Succeeded"}),
        builders.job(status={"phase": "Failed"}),
    ],
    ids=["other image", "succeeded", "failed"],
)
def test_supervisors_that_cannot_have_a_report_are_not_asked(job: Job) -> None:
    assert asked(stored(job)) == {}


def test_a_pod_that_does_not_run_is_not_asked() -> None:
    job = builders.job(evaluator=True)
    ended = builders.pod(job, "chief-0", builders.ended(1))
    waiting = builders.pod(job, "evaluator-0", builders.waiting("ImagePullBackOff"))
    assert asked(stored(job, **{"chief-0": ended, "evaluator-0": waiting})) == {}


def test_an_unreadable_job_and_the_pods_of_another_owner_are_not_asked() -> None:
    store = stored(builders.job())
    invalid = deepcopy(store.job(KEY))
    assert invalid is not None
    invalid["spec"]["replicaSpecs"]["worker"] = {"replicas": 0}
    invalid["metadata"]["resourceVersion"] = "2"
    store.apply(invalid)
    assert asked(store) == {}
    strangers = builders.all_pods(builders.job(uid="another"))
    assert asked(stored(builders.job(), **strangers)) == {}


def silent(store: Store, task: str) -> None:
    store.set_silence(KEY, task, Silence(task, "10.0.0.7:2223", builders.NOW, "ConnectTimeout", "no answer"))


def test_a_task_that_the_chief_cannot_reach_is_asked_for_the_reason() -> None:
    store = stored(builders.job())
    store.set_report(KEY, "chief-0", {"unreached": {"worker-9": "", "worker-1": "", "worker-0": ""}})
    assert [(one.task, one.only_if_chief_silent) for one in reports.supervisors_to_ask(store)] == [
        ("chief-0", False),
        ("worker-1", True),
    ]
    store.set_report(KEY, "chief-0", {"step": 1})
    assert list(asked(store)) == ["chief-0"]


def test_workers_are_asked_while_the_chief_of_a_job_with_a_stall_timeout_is_silent() -> None:
    job = builders.job(failurePolicy={"stallTimeoutSeconds": 600}, evaluator=True)
    store = stored(job, **{"worker-0": builders.pod(job, "worker-0", builders.ended(1))})
    silent(store, "evaluator-0")
    assert list(asked(store)) == ["chief-0", "evaluator-0"]
    silent(store, "chief-0")
    assert [(one.task, one.only_if_chief_silent) for one in reports.supervisors_to_ask(store)] == [
        ("chief-0", False),
        ("evaluator-0", False),
        ("worker-1", True),
    ]


async def test_reports_of_workers_are_dropped_once_the_chief_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may not hold when the chief's status cannot be read the next time."""
    job = builders.job(workers=1, failurePolicy={"stallTimeoutSeconds": 600})
    worker = builders.pod(job, "worker-0", {**builders.running(), "podIP": "10.0.0.8"})
    store = stored(job, **{"worker-0": worker})
    report = {"jobUid": builders.JOB_UID, "attempt": 0}

    async def read_status(host: str, port: int) -> dict[str, Any]:
        if host == "10.0.0.7":
            raise NoStatus("ConnectTimeout", "no answer")
        return report

    monkeypatch.setattr(reports, "read_status", read_status)
    async with polling(reports.Reports(store, WorkQueue(), 0.001)):
        while set(store.children(KEY).reports) != {"worker-0"}:
            await asyncio.sleep(0.001)
        while "worker-0" in store.children(KEY).reports:
            store.set_report(KEY, "chief-0", report)  # as it is asked ever less often
            await asyncio.sleep(0.001)


async def polled(answer: Any, rounds: int = 2) -> tuple[Store, list[JobKey]]:
    """Store and queued keys after so many rounds in which the chief answers so."""
    (port,) = free_ports(1)
    job = builders.job(network={"statusPort": port})
    store, queue, enough = stored(job, host="127.0.0.1"), WorkQueue[JobKey](), asyncio.Event()
    questions = 0

    def status(_: web.Request) -> web.Response:
        nonlocal questions
        questions += 1
        if questions > rounds:
            enough.set()
        return answer if isinstance(answer, web.Response) else web.json_response(answer)

    made = reports.Reports(store, queue, 0.01, lambda: builders.NOW)
    async with serving("/status", status, ("127.0.0.1", port), "--test"), polling(made):
        await enough.wait()
    return store, [await queue.get() for _ in range(len(queue))]


async def test_a_report_is_kept_and_the_job_is_looked_at() -> None:
    report = {"jobUid": builders.JOB_UID, "step": 120}
    store, due = await polled(report)
    assert store.children(KEY).reports == {"chief-0": report}
    assert store.children(KEY).silences == {}
    assert due == [KEY]


@pytest.mark.parametrize(
    "answer",
    [{"jobUid": "an earlier job", "step": 9}, {"step": 9}, ["step"], "text"],
    ids=["another job's", "nobody's", "a list", "a word"],
)
async def test_a_report_that_is_not_of_this_job_counts_as_silence(answer: Any) -> None:
    store, due = await polled(answer, rounds=1)
    assert store.children(KEY).reports == {}
    silence = store.children(KEY).silences["chief-0"]
    assert (silence.reason, silence.since, silence.pod_uid) == ("BadAnswer", builders.NOW, "chief-0")
    assert due == [KEY], "looked at once, to be told when the silence is to be said"


async def test_a_report_is_kept_within_bounds() -> None:
    report = {"jobUid": builders.JOB_UID, "step": 120, "metrics": {"matrix": [[0.5] * 30] * 30, "accuracy": 0.5}}
    store, _ = await polled(report)
    assert store.children(KEY).reports["chief-0"]["metrics"] == {"accuracy": 0.5}


async def test_supervisors_are_asked_again_when_polling_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process starts a loop again that has ended, whatever ended it."""
    asked = asyncio.Event()

    async def read_status(host: str, port: int) -> Any:
        asked.set()
        raise NoStatus("ConnectTimeout", "no answer")

    monkeypatch.setattr(reports, "read_status", read_status)
    made = reports.Reports(stored(builders.job()), WorkQueue(), 0.001)
    for _ in range(2):
        asked.clear()
        async with polling(made):
            await asked.wait()


async def test_an_object_of_one_job_that_raises_does_not_stop_the_requests_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = stored(builders.job())
    bad = job_manifest(builders.job(name="bad"))
    bad["metadata"]["resourceVersion"] = "1"
    store.apply(bad)
    whole = store.children

    def children(key: JobKey) -> Any:
        if key[1] == "bad":
            raise RuntimeError("what nobody thought of")
        return whole(key)

    monkeypatch.setattr(store, "children", children)
    assert list(asked(store)) == ["chief-0"]


async def test_a_bug_in_one_answer_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    async def read_status(host: str, port: int) -> Any:
        nonlocal tried
        tried += 1
        raise RecursionError

    monkeypatch.setattr(reports, "read_status", read_status)
    async with polling(reports.Reports(stored(builders.job()), WorkQueue(), 0.001)):
        await until(lambda: tried >= 3)


def supervisor(namespace: str, number: int = 0) -> reports.Supervisor:
    return reports.Supervisor((namespace, f"job-{number}"), "chief-0", f"{namespace}-{number}", namespace, 2223)


async def requests(monkeypatch: pytest.MonkeyPatch, made: reports.Reports, one: reports.Supervisor) -> list[float]:
    """The pauses of seven requests to a supervisor that is silent but for the sixth."""
    pauses: list[float] = []
    really = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await really(0)

    async def ask(_: reports.Supervisor) -> bool:
        return len(pauses) == 5

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(made, "_ask", ask)
    asking = asyncio.create_task(made._ask_forever(one))
    while len(pauses) < 7:
        await really(0)
    asking.cancel()
    return pauses[:7]


async def test_a_silent_supervisor_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    made = reports.Reports(Store(), WorkQueue(), 5.0)
    pauses = await requests(monkeypatch, made, supervisor("a"))
    assert pauses[:5] == [5, 10, 20, 40, reports.LONGEST_PAUSE_SECONDS]
    assert pauses[5:] == [5, 5], "an answer forgives all"


@pytest.mark.parametrize("spread", [1, 300], ids=["in one namespace", "in as many namespaces"])
async def test_a_supervisor_that_answers_is_asked_beside_300_that_hang(
    monkeypatch: pytest.MonkeyPatch, spread: int
) -> None:
    well, answers, hanging, most = supervisor("well"), 0, 0, 0
    found = [well]

    async def read_status(host: str, port: int) -> dict[str, Any]:
        nonlocal answers, hanging, most
        if host == "well":
            answers += 1
            return {}
        hanging, most = hanging + 1, max(most, hanging + 1)
        try:
            await asyncio.Event().wait()
        finally:
            hanging -= 1
        raise AssertionError

    monkeypatch.setattr(reports, "read_status", read_status)
    monkeypatch.setattr(reports, "supervisors_to_ask", lambda _: found)
    async with polling(reports.Reports(Store(), WorkQueue(), 0.001)):
        await until(lambda: answers)
        found += [supervisor(f"hung-{number % spread}", number) for number in range(300)]
        await until(lambda: hanging)
        enough = answers + 5
        await until(lambda: answers >= enough)
        assert most == (reports.AT_ONCE_IN_NAMESPACE if spread == 1 else reports.AT_ONCE)
        found.clear()
        await until(lambda: not hanging)


async def _hang(seconds: float = 3.0) -> None:
    await asyncio.sleep(seconds)
    raise NoStatus("NoAnswer", "no answer")


@pytest.mark.parametrize(
    ("missed", "seconds"),
    [(0, 20), (1, 20), (2, 40), (4, 100)],
    ids=["a new one", "one that missed a request", "one that missed two", "one that is late by a minute"],
)
@simulated
async def test_no_supervisor_that_answers_waits_behind_500_silent_ones_of_its_namespace(
    monkeypatch: pytest.MonkeyPatch, missed: int, seconds: float
) -> None:
    found, answered, left = [supervisor("a", number) for number in range(500)], list[float](), missed
    well = replace(supervisor("a", 500), host="well")

    async def read_status(host: str, port: int) -> dict[str, Any]:
        nonlocal left
        if host != well.host or left:
            left -= host == well.host
            await _hang()
        answered.append(asyncio.get_running_loop().time())
        return {}

    monkeypatch.setattr(reports, "read_status", read_status)
    monkeypatch.setattr(reports, "supervisors_to_ask", lambda _: found)
    async with going_on(reports.Reports(Store(), WorkQueue(), 5.0).poll_forever()):
        await asyncio.sleep(600)
        found.append(well)
        began = asyncio.get_running_loop().time()
        while not answered:
            await asyncio.sleep(1.0)
    assert answered[0] - began <= seconds
