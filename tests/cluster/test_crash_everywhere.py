# SPDX-License-Identifier: Apache-2.0
"""Whole lives of jobs in which the operator is killed after any one of its calls, or any one call fails in any way.

`make test` plays a fixed sample, and `make crash-everywhere` all of them. `tests/cluster/crashes/` has the stories,
what can befall a call, and what must hold.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.crashes.everywhere import Report, batches, part, play, product, undisturbed
from tests.cluster.crashes.slot import Slot, slots
from tests.cluster.crashes.stories import STORIES
from tests.cluster.support import kueue
from tests.cluster.support.gangs import COSCHEDULING, VOLCANO, serve
from tools import binaries
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api
from tools.programs import CONTROL_PLANE

ROOT = Path(__file__).resolve().parents[2]
SLOTS = int(os.environ.get("DTJOB_CRASH_SLOTS", "4"))
"""Namespaces that are worked in at once."""
SAMPLE = "1/240"
PART = os.environ.get("DTJOB_CRASH_PART", SAMPLE)
"""The part of all lives that is played: parts 1/10 to 10/10 are all of them."""
ONLY = os.environ.get("DTJOB_CRASH_ONLY", "")
"""A regular expression for the lives that are played, each as its story, its step and what befalls it."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane with the Workloads and PodGroups of others, and nobody who admits or binds anything."""
    try:
        programs = binaries.find(CONTROL_PLANE)
    except binaries.BinariesError as error:
        pytest.skip(f"no Kubernetes programs: {str(error).splitlines()[0]}")
    with ControlPlane(programs) as running:
        running.kubectl("apply", "-f", str(ROOT / "crds"))
        api = Api(running.kubeconfig)
        api.wait_established()
        kueue.install(api)
        for definition in (VOLCANO, COSCHEDULING):
            serve(running, definition.read_text())
        yield running


@pytest.fixture(scope="module")
def lives(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Slot]]:
    with slots(cluster, tmp_path_factory.mktemp("lives"), SLOTS) as made:
        yield made


@pytest.mark.timeout(1800 if PART == SAMPLE else 0)
def test_a_job_comes_to_the_same_whatever_befalls_any_one_call(lives: list[Slot]) -> None:
    """The same status, restarts, incidents and objects, no two living pods of a task, and no event twice."""
    first = undisturbed(lives, STORIES)
    number, parts = map(int, PART.split("/"))
    chosen = [life for life in part(product(first), number, parts) if re.search(ONLY, str(life))]
    assert chosen, f"no life is as {ONLY!r}"
    report = Report(len(chosen))
    play(lives, batches(chosen), {story: life.outcome for story, life in first.items()}, report)
    print(report)
    assert len(report.missed) <= len(chosen) / 4, "the calls of a life are no longer known beforehand"
    assert not report.wrong
