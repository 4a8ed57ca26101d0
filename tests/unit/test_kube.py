"""The parts of kube.py that need no API server; the rest is tests/cluster's."""

from __future__ import annotations

import pytest
from kubernetes.aio import client

from dtjob.kube import Kube


@pytest.mark.parametrize("authorization", ["Bearer secret", "bearer secret"], ids=["kubeconfig", "service account"])
async def test_kopf_is_given_the_bare_token(authorization: str):
    configuration = client.Configuration()
    configuration.api_key["BearerToken"] = authorization
    async with client.ApiClient(configuration) as api_client:
        assert (await Kube(api_client).credentials()).token == "secret"
