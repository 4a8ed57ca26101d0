"""What of the client needs no API server; the rest is tests/cluster's."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubernetes.aio import client

from dtjob.kube.client import Kube, connect
from dtjob.kube.kubeconfig import NoCluster
from dtjob.kube.transport import Transport


@pytest.mark.parametrize("authorization", ["Bearer secret", "bearer secret"], ids=["kubeconfig", "service account"])
async def test_kopf_is_given_the_bare_token(authorization: str):
    configuration = client.Configuration()
    configuration.api_key["BearerToken"] = authorization
    async with client.ApiClient(configuration) as api_client:
        assert (await Kube(api_client, Transport(api_client, 5)).credentials()).token == "secret"


@pytest.mark.parametrize("text", ["{}", "", "- 1", "not: [yaml", "clusters: 3"])
async def test_a_kubeconfig_of_no_use_is_an_error_of_ours(tmp_path: Path, text: str):
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(text)
    with pytest.raises(NoCluster) as refused:
        async with connect(str(kubeconfig)):
            pass
    assert "object" not in str(refused.value)  # Python's own words help nobody


async def test_without_kubeconfig_and_outside_a_pod_there_is_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(NoCluster):
        async with connect():
            pass
