# SPDX-License-Identifier: Apache-2.0
"""CPU milliseconds of one plan, for jobs of 4 to 4,000 pods that all run, have one failed, or were all just created.

A reconcile's own share is measured with it: reading the job's manifest, which the reconciler does once for each version
of it that it sees.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from dtjob.api.job import Job
from dtjob.controller.store import Store
from dtjob.objects.shared import shared_objects
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

SIZES = (4, 100, 1_000, 4_000)
KEY = ("default", "digits")
STATES: dict[str, Callable[[list[Any]], None]] = {
    "allRun": lambda pods: None,
    "oneFailed": lambda pods: pods[-1].update(status=builders.ended(1, NOW)),
    "allCreated": lambda pods: [pod.pop("status", None) for pod in pods] and None,
}


def observed(size: int, state: str) -> tuple[Job, Children]:
    """A job of so many pods with the status that it has then, and its children out of a store."""
    job = builders.job(workers=size - 1)
    pods = list(builders.all_pods(job).values())
    others = [builders.stored(one) for one in shared_objects(job)]
    before = plan(job, _stored([*deepcopy(pods), *others]), NOW).status or {}
    if state != "allCreated":
        job = builders.with_status(job, before)
    STATES[state](pods)
    children = _stored([*pods, *others])
    if state == "allCreated":
        job = builders.with_status(job, plan(job, children, NOW).status or {})
    return job, children


def _stored(objects: list[Any]) -> Children:
    store = Store()
    for one in objects:
        store.apply(one)
    return store.children(KEY)


def milliseconds(call: Callable[[], object], rounds: int) -> float:
    """The median CPU time of a call."""
    spent = []
    call()
    for _ in range(rounds):
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return round(statistics.median(spent) * 1000, 2)


def main() -> None:
    """Print one JSON object: by state and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    result: dict[str, dict[str, float]] = {}
    for state in STATES:
        result[state] = {}
        for size in SIZES:
            job, children = observed(size, state)
            result[state][str(size)] = milliseconds(
                lambda job=job, children=children: plan(job, children, at(5)), rounds
            )
    manifest = builders.job(workers=SIZES[-1] - 1).model_dump(mode="json", by_alias=True, exclude_unset=True)
    reading = milliseconds(lambda: Job.model_validate(manifest), rounds)
    json.dump({"millisecondsOfAPlan": result, "millisecondsToReadTheJob": reading}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
