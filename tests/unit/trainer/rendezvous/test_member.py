# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.member: who hosts, who reports, who does neither."""

import asyncio

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import TaskError
from dtjob_trainer.rendezvous.member import Member
from dtjob_trainer.rendezvous.messages import Answer, Registration

CLUSTER = {"chief": ("127.0.0.1:1",)}


def member(role: str, on_answer: list[Answer] | None = None, **changes: object) -> Member:
    values: dict[str, object] = {"strategy": "MultiWorkerMirrored", "cluster": CLUSTER, **changes}
    task = Task("job", "ns", "uid", role, 0, **values)  # type: ignore[arg-type]
    heard = on_answer if on_answer is not None else []
    registration = Registration("uid", "", task.id, 0, "s", 0, "waiting")
    return Member(task, "s", lambda: registration, lambda _, answer: heard.append(answer), lambda _: None)


async def reported(each: Member, heard: list[Answer]) -> None:
    """Report until something was heard."""
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        each.report(group)
        each.report(group)
        each.news()
        while not heard:
            await asyncio.sleep(0.01)
        each.leave()


async def test_the_chief_hosts_and_reports_to_itself() -> None:
    heard: list[Answer] = []
    chief = member("chief", heard)
    assert chief.host is not None
    await reported(chief, heard)
    assert (heard[0].kind, heard[0].chief) == ("go", "s")
    await chief.host.finish(30)


async def test_a_task_outside_the_cluster_sends_no_reports() -> None:
    evaluator = member("evaluator")
    assert evaluator.host is None
    async with asyncio.TaskGroup() as group:
        evaluator.report(group)
        evaluator.news()
    evaluator.leave()


def test_a_worker_must_know_where_the_rendezvous_is() -> None:
    cluster = {**CLUSTER, "worker": ("127.0.0.1:2",)}
    with pytest.raises(TaskError, match="DTJOB_RENDEZVOUS_ADDRESS is"):
        member("worker", cluster=cluster)
    assert member("worker", cluster=cluster, rendezvous="127.0.0.1:3").host is None
