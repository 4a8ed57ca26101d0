# SPDX-License-Identifier: Apache-2.0
"""An API server takes a job that leaves its name to it where `dtjob validate` says so, and refuses it where not."""

import pytest

from dtjob.crd.answers.problems import problems
from dtjob.manifests.job_file import with_a_name
from tests.refusals.manifests import Manifest, job
from tools.cluster.rest import Api, ApiError

LONGEST = 49
"""Characters of the longest begin that leaves room for the host name of the tenth worker."""


def _left_to_the_server(begin: str) -> Manifest:
    manifest = job(replicaSpecs={"chief": {}, "worker": {"replicas": 10}})
    return {**manifest, "metadata": {"generateName": begin}}


@pytest.mark.parametrize("begin", ["digits-", "a" * LONGEST], ids=["short", "longest"])
def test_an_api_server_accepts_a_generated_name_that_validate_accepts(api: Api, namespace: str, begin: str) -> None:
    manifest = _left_to_the_server(begin)
    read = with_a_name(manifest)
    assert problems(read) == []
    name = api.create("dtjobs", namespace, manifest, dryRun="All")["metadata"]["name"]
    assert name.startswith(begin)
    assert len(name) == len(read["metadata"]["name"])


@pytest.mark.parametrize("begin", ["a" * (LONGEST + 1), "a" * 64, "9-", "a_"])
def test_an_api_server_refuses_a_generated_name_that_validate_refuses(api: Api, namespace: str, begin: str) -> None:
    manifest = _left_to_the_server(begin)
    assert problems(with_a_name(manifest))
    with pytest.raises(ApiError):
        api.create("dtjobs", namespace, manifest, dryRun="All")
