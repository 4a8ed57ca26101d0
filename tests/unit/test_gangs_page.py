# SPDX-License-Identifier: Apache-2.0
"""The manifests of docs/jobs/gangs.md: right, and one for each provider; the tests with real schedulers run them."""

from __future__ import annotations

from dtjob.api.spec.scheduling import GangProvider
from dtjob.crd.answers.problems import problems
from tests.cluster.support.gangs import APIS, page_manifest


def test_there_is_one_for_each_provider_and_an_api_server_takes_it() -> None:
    for provider in GangProvider:
        assert problems(page_manifest(provider.value)) == []
    assert {*APIS, GangProvider.KUBERNETES} == set(GangProvider)
