# SPDX-License-Identifier: Apache-2.0
"""A job that was deleted, of which no watch has told: nothing is made for it, whatever of its objects is missing."""

import pytest

from dtjob.api.job import KIND
from dtjob.objects import labels
from tests.unit.operator import builders
from tests.unit.operator.simulation.api import copied
from tests.unit.operator.simulation.operator import World, job_manifest


def creates(made: World) -> list[str]:
    return [call for call in made.cluster.calls if call.startswith("create")]


@pytest.fixture(params=[False, True], ids=["no job has its name", "another job has its name"])
def again(request: pytest.FixtureRequest) -> bool:
    """Whether the user has made another job of that name since."""
    return bool(request.param)


def delete_unheard(made: World, *, again: bool) -> None:
    """Delete the job as between a LIST and a watch: nobody tells of it."""
    made.lose_watch()
    made.cluster.remove(KIND, made.key[1])
    if again:
        other = job_manifest(builders.job())
        other["metadata"]["uid"] = "another"
        made.cluster.put(other)
    made.cluster.calls.clear()


@pytest.mark.parametrize("kind", ["Service", "ConfigMap", "NetworkPolicy", "Pod"])
def test_nothing_is_made_for_a_job_that_has_gone_unheard(kind: str, again: bool) -> None:
    with World(builders.job()) as made:
        made.run(3)
        delete_unheard(made, again=again)
        for one in copied(made.cluster.of_kind(kind)):
            if labels.JOB_NAME in labels.of(one):
                made.cluster.remove(kind, one["metadata"]["name"])
                made.deliver("DELETED", one)
        made.run(60)
        assert "write status" in made.cluster.calls
        assert creates(made) == []
        assert (made.store.job(made.key) is None) is not again


def test_a_job_for_which_nothing_is_made_is_not_confirmed() -> None:
    """It would cost a call at each of its changes."""
    with World(builders.job()) as made:
        made.cluster.quota = 0
        made.run(50)
        writes = made.cluster.calls.count("write status")
        for _ in range(20):
            made.queue.add(made.key)
            made.run(0.1)
        assert made.cluster.calls.count("write status") == writes
