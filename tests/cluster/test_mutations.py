# SPDX-License-Identifier: Apache-2.0
"""Random changes of good manifests: `dtjob validate` says of each what a real API server says, of the job, its pods and
its claim.

DTJOB_MUTATIONS=20000 pytest tests/cluster/test_mutations.py        # new ones each time; the seed is printed
DTJOB_MUTATIONS=20000 DTJOB_MUTATION_SEED=7 pytest …                # those of this seed
"""

import json
import os
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from dtjob.api.job import Job, stored_job
from dtjob.crd.answers.problems import problems
from dtjob.objects import topology
from dtjob.objects.defaults import Defaults
from dtjob.objects.pod.pod import pod
from dtjob.objects.shared import claim
from tests.refusals import GOOD, ONLY_VALIDATE, Bad, Manifest
from tests.refusals.mutations import mutated
from tools.cluster.rest import Api, ApiError, Object

NUMBER, SEED = int(os.environ.get("DTJOB_MUTATIONS", "0")), os.environ.get("DTJOB_MUTATION_SEED")
ALWAYS = 300
"""Mutations in each run of the tests, always the same."""
LARGEST = 20_000
"""Bytes of a manifest that is changed: most of its places would be much the same."""
DEFAULTS = Defaults(image="trainer:1")
SEEN_BEFORE = re.compile(
    r"strict decoding error|cannot unmarshal|unable to parse quantity|quantities must match"
    r"|must be less than or equal to|Limit must be set|must be equal to|containers\[\d+\].image: Required"
    r"|^(?!.*spec.volumes\[).*volumeMounts\[\d+\].name: Not found",
    re.IGNORECASE,
)
"""Of these refusals those that `dtjob validate` knows too. A volume that is wrong counts as not there."""


@pytest.fixture(scope="module")
def shared(api: Api) -> Iterator[str]:
    """One namespace for all: nothing is kept."""
    made = api.create("namespaces", None, {"metadata": {"generateName": "mutations-"}})["metadata"]["name"]
    api.wait_for("serviceaccounts", made, "default", lambda found: found is not None)
    yield made
    api.delete("namespaces", None, made)


def asked(api: Api, resource: str, namespace: str, manifest: Object) -> Object | str:
    """The object as the API server would store it, or why it refuses it."""
    try:
        return api.create(resource, namespace, manifest, dryRun="All")
    except ApiError as error:
        if error.status not in (400, 403, 422):
            raise
        return error.message


def without_nulls(value: Any) -> Any:
    """What is null is as if left out. Only a strict reader minds a name that it does not know before a null."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def refusals_of_parts(api: Api, namespace: str, job: Job) -> list[str]:
    """Why the API server refuses the first pod of each role, and the claim."""
    first = {task.role: task for task in reversed(list(topology.tasks(job)))}
    parts = [("pods", pod(job, task, 0, DEFAULTS)) for task in first.values()]
    if (made := claim(job)) is not None:
        parts.append(("persistentvolumeclaims", made))
    answers = (asked(api, resource, namespace, without_nulls(one)) for resource, one in parts)
    return [said for said in answers if isinstance(said, str)]


def disagreement(api: Api, namespace: str, manifest: Manifest) -> str:
    """How `dtjob validate` and the API server differ about this manifest, empty if they do not."""
    said = [str(problem) for problem in problems(manifest)]
    stored = asked(api, "dtjobs", namespace, manifest)
    if isinstance(stored, str):
        return "" if said else f"valid, but refused: {stored}"
    try:
        job = stored_job(stored)
    except ValidationError:  # which the operator says in the job's status
        return "" if said else "valid, but the operator cannot read it"
    of_parts = refusals_of_parts(api, namespace, job)
    if said and not of_parts:
        return f"taken, but not valid: {said}"
    known = [refusal for refusal in of_parts if SEEN_BEFORE.search(refusal)]
    return f"valid, but its pods or claim are refused: {known}" if known and not said else ""


@pytest.mark.parametrize("row", ONLY_VALIDATE, ids=lambda row: row.name)
def test_a_manifest_that_only_validate_refuses_has_pods_or_a_claim_that_is_refused(
    api: Api, shared: str, row: Bad
) -> None:
    assert not isinstance(asked(api, "dtjobs", shared, row.manifest), str)
    assert problems(row.manifest)
    assert disagreement(api, shared, row.manifest) == ""


def test_random_changes_are_refused_as_by_the_api_server(api: Api, shared: str) -> None:
    seed = SEED or (str(Random().randrange(10**6)) if NUMBER else "1")
    print(f"DTJOB_MUTATION_SEED={seed}")
    random = Random(seed)
    manifests = [one for one in GOOD.values() if len(json.dumps(one)) < LARGEST]
    found: dict[str, str] = {}
    for _ in range(NUMBER or ALWAYS):
        manifest = mutated(random.choice(manifests), random)
        if told := disagreement(api, shared, manifest):
            found.setdefault(
                re.sub(r"[\d\[\]]+|'[^']*'|\"[^\"]*\"", "#", told)[:120], f"{told}\n{json.dumps(manifest)}"
            )
    assert not found, f"{len(found)} kinds:\n\n" + "\n\n".join(found.values())
