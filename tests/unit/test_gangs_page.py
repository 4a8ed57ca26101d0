# SPDX-License-Identifier: Apache-2.0
"""The manifests of docs/jobs/gangs.md: right, and one for each provider; the tests with real schedulers run them."""

from dtjob.api.spec.scheduling import GangProvider
from dtjob.crd.answers.problems import problems
from tests.cluster.support.gangs import APIS, page_manifest


def test_the_page_has_an_accepted_manifest_for_each_provider() -> None:
    for provider in GangProvider:
        assert problems(page_manifest(provider.value)) == []
    assert {*APIS, GangProvider.KUBERNETES} == set(GangProvider)
