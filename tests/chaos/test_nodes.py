# SPDX-License-Identifier: Apache-2.0
"""Four jobs side by side on real nodes, while everything is killed, frozen, cut off or filled: `make chaos-cluster`.

Before, each job runs once undisturbed. DTJOB_CHAOS_MINUTES says for how long, DTJOB_CHAOS_SEED what happens; the
moments depend on the machine too.
"""

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.chaos.support import kinds, weights
from tests.chaos.support.bed import JOBS, Bed
from tests.chaos.support.hazards.hazard import World
from tests.chaos.support.hazards.plan import Chaos
from tests.chaos.support.rounds import Ended, Rounds
from tests.chaos.support.sightings import Sightings
from tests.e2e.support import evidence

MINUTES = float(os.environ.get("DTJOB_CHAOS_MINUTES") or 60)
SEED = int(os.environ.get("DTJOB_CHAOS_SEED") or random.SystemRandom().randrange(10_000))
GAP = float(os.environ.get("DTJOB_CHAOS_GAP") or 12)
"""Seconds from one hazard to the next, on average. A busy machine needs more, because starts take longer."""
LAST_SECONDS = 1500.0
"""How long the undisturbed jobs may take, and how long the last jobs may take after the last hazard."""


def say(line: str) -> None:
    """On the terminal, with the time."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S', time.gmtime())} {line}\n")
    sys.stdout.flush()


def wait(over: Callable[[], bool]) -> None:
    """Return when `over` holds."""
    while not over():
        time.sleep(0.5)


def run_all(bed: Bed, sightings: Sightings, kept: Path, chaos: Chaos | None = None) -> list[Ended]:
    """Run each kind of job once, or again and again while there is chaos. Return when the last jobs have ended. The
    name of the directory `kept` is the first part of the jobs' names."""
    rounds = [Rounds(bed, kind, sightings, say, kept) for kind in kinds.KINDS]
    try:
        if chaos:
            chaos.go_on(60 * MINUTES)
        for one in rounds:
            one.enough.set()
        limit = time.monotonic() + LAST_SECONDS

        def over() -> bool:
            return all(one.over() for one in rounds) or time.monotonic() > limit

        chaos.wait(over) if chaos else wait(over)
    finally:
        for one in rounds:
            one.enough.set()
            one.end()
    assert not [one.error for one in rounds if one.error], "a job has not ended"
    return [job for one in rounds for job in one.ended]


def goodput(jobs: Sequence[Ended]) -> dict[str, float]:
    """The seconds of all jobs by what they went into."""
    found: dict[str, float] = {}
    for job in jobs:
        for name, seconds in job.status.get("goodput", {}).get("seconds", {}).items():
            found[name] = round(found.get(name, 0.0) + float(seconds), 1)
    return found


def report(jobs: Sequence[Ended], chaos: Chaos, sightings: Sightings) -> None:
    """Print the hazards, the restarts and the goodput."""
    say(f"{MINUTES:g} minutes, seed {SEED}: {sum(chaos.done.values())} hazards: {dict(chaos.done.most_common())}")
    for kind in kinds.KINDS:
        ours = [job for job in jobs if job.kind is kind]
        spent = goodput(ours)
        known = sum(seconds for name, seconds in spent.items() if name != "unknown")
        restarts = sum(job.status.get("restarts", {}).get("total", 0) for job in ours)
        percent = 100 * spent.get("kept", 0.0) / known if known else 0.0
        say(f"{kind.name}: {len(ours)} jobs, {restarts} restarts, goodput {percent:.0f} %: {spent}")
    say(f"{sightings.looks} looks, {sightings.blind} more without an API server; {len(sightings.pods_seen)} pods")
    for what in sightings.broken:
        say(what)


def check_bits(undisturbed: Sequence[Ended], jobs: Sequence[Ended]) -> None:
    """Each synchronous job has ended with the bits of its undisturbed run. The others have the same variables."""
    everything = [*undisturbed, *jobs]
    bits = dict(zip((job.name for job in everything), weights.of_runs(job.saved for job in everything), strict=True))
    assert all(bits.values()), "a job has left no checkpoint"
    right = {job.kind.name: bits[job.name] for job in undisturbed}
    for job in jobs:
        if job.kind.synchronous:
            assert bits[job.name] == right[job.kind.name], job.name
        else:
            assert bits[job.name].keys() == right[job.kind.name].keys(), job.name
    say(f"the bits of {sum(job.kind.synchronous for job in jobs)} synchronous jobs are those of undisturbed runs")


@pytest.mark.timeout(MINUTES * 60 + 2 * LAST_SECONDS + 900)
def test_whatever_fails_jobs_succeed_and_synchronous_ones_come_to_the_same_bits(tmp_path: Path) -> None:
    say(f"make chaos-cluster MINUTES={MINUTES:g} SEED={SEED} GAP={GAP:g} EPOCHS={kinds.EPOCHS}")
    with Bed([kind.name for kind in kinds.KINDS], tmp_path) as bed:
        try:
            bed.api.create("configmaps", JOBS, kinds.source())
            with Sightings(bed) as sightings:
                undisturbed = run_all(bed, sightings, tmp_path / "quiet")
                assert [job.name for job in undisturbed if not job.succeeded] == []
                assert not sightings.broken
                chaos = Chaos(World(bed, sightings, random.Random(SEED)), GAP, say)
                jobs = run_all(bed, sightings, tmp_path / "chaos", chaos)
            report(jobs, chaos, sightings)
            assert [job.name for job in jobs if not job.succeeded] == []
            check_bits(undisturbed, jobs)
            assert not sightings.broken
        except BaseException:
            say(f"what the cluster said is in {evidence.collect(bed.node, 'chaos', [JOBS])}")
            raise
