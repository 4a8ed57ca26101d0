# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.host: answers are held back until there is news."""

import asyncio

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous.host import RendezvousHost, look_up, rendezvous_of
from dtjob_trainer.rendezvous.messages import Answer
from tests.unit.trainer.rendezvous.groups import GROUP, begun, mirrored, registration

HOSTS = dict.fromkeys(GROUP, "127.0.0.1:1")


async def answers(host: RendezvousHost, *tasks: str, address: str | None = None) -> list[Answer]:
    return await asyncio.gather(*(host.answer(registration(task), address) for task in tasks))


async def test_all_tasks_are_answered_go_when_the_last_one_has_come() -> None:
    host = RendezvousHost(mirrored(), HOSTS)
    held = asyncio.create_task(answers(host, "chief-0", "worker-1"))
    await asyncio.sleep(0.05)
    assert not held.done()
    assert [answer.kind for answer in await answers(host, "worker-0")] == ["go"]
    assert [answer.kind for answer in await held] == ["go", "go"]


async def test_every_answer_says_which_attempt_at_the_chief_task_gives_it() -> None:
    host = RendezvousHost(mirrored(), HOSTS, "s", attempt=3)
    assert {(each.chief, each.chief_attempt) for each in await answers(host, *GROUP, "nobody-7")} == {("s", 3)}


async def test_tasks_go_once_their_names_are_looked_up() -> None:
    host = RendezvousHost(mirrored(), HOSTS)
    assert [answer.kind for answer in await answers(host, *GROUP, address="127.0.0.1")] == ["go"] * 3


async def test_a_task_that_goes_away_while_it_waits_is_missing() -> None:
    rendezvous = mirrored()
    host = RendezvousHost(rendezvous, HOSTS)
    waiting = asyncio.create_task(host.answer(registration("worker-0"), None))
    await asyncio.sleep(0.01)
    assert rendezvous.missing(0) == ["chief-0", "worker-1"]
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert rendezvous.missing(0) == list(GROUP)


async def test_waiting_tasks_get_the_end_of_training_at_once() -> None:
    rendezvous = begun()
    host = RendezvousHost(rendezvous, HOSTS)
    running = [registration(task, "running", generation=1) for task in GROUP[1:]]
    held = asyncio.gather(*(host.answer(each, None) for each in running))
    await asyncio.sleep(0.01)
    await asyncio.wait_for(host.finish(60), 30)
    assert [answer.kind for answer in await held] == ["done", "done"]


async def test_the_end_does_not_wait_for_ever() -> None:
    await asyncio.wait_for(RendezvousHost(mirrored(), HOSTS).finish(0.01), 30)


async def test_a_preempted_task_is_answered_when_there_is_news() -> None:
    """Else its supervisor would ask without a pause, just while its training process saves."""
    rendezvous = begun()
    host = RendezvousHost(rendezvous, {})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(host.answer(registration("worker-0", phase="preempted", generation=1), None), 0.05)


async def test_the_strategy_decides_which_tasks_start_together() -> None:
    cluster = {"chief": ("a:1",), "worker": ("b:1", "c:1"), "ps": ("d:1",)}

    def missing(strategy: str) -> list[str]:
        task = Task("job", "ns", "uid", "chief", 0, strategy=strategy, cluster=cluster)
        return rendezvous_of(task, "s").rendezvous.missing(0)

    assert missing("MultiWorkerMirrored") == ["chief-0", "worker-0", "worker-1"]
    assert missing("ParameterServer") == ["chief-0", "worker-0", "worker-1", "ps-0"]
    task = Task("job", "ns", "uid", "chief", 0, strategy="ParameterServer", cluster=cluster)
    assert rendezvous_of(task, "s").rendezvous.group == ("chief-0",)


async def test_a_name_is_looked_up() -> None:
    assert await look_up("127.0.0.1") == ["127.0.0.1"]
    with pytest.raises((OSError, UnicodeError)):
        await look_up("x" * 64)  # longer than a label of DNS may be: nobody is asked
