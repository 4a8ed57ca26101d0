"""What of the client needs no API server; the rest is tests/cluster's."""

from __future__ import annotations

import errno
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import certifi
import pytest
from aiohttp import web
from kubernetes.aio import client
from kubernetes.aio.config import incluster_config, kube_config
from kubernetes.aio.config.incluster_config import InClusterConfigLoader

from dtjob.controller.cluster import ClusterError
from dtjob.kube.client import Kube, connect
from dtjob.kube.kubeconfig import NoCluster
from dtjob.kube.transport import Transport
from tests.unit.operator.kube.answering import asking


@pytest.mark.parametrize("authorization", ["Bearer secret", "bearer secret"], ids=["kubeconfig", "service account"])
async def test_kopf_is_given_the_bare_token(authorization: str):
    configuration = client.Configuration()
    configuration.api_key["BearerToken"] = authorization
    async with client.ApiClient(configuration) as api_client:
        assert (await Kube(api_client, Transport(api_client, 5)).credentials()).token == "secret"


@pytest.mark.parametrize("text", ["", "<html>log in</html>", "[1]"])
async def test_an_answer_that_is_no_api_servers_is_a_call_that_failed(text: str):
    """As of a proxy that wants to be logged in to: 200, and a page."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text)

    async with asking(answer) as kube:
        with pytest.raises(ClusterError, match="no API server"):
            await kube.get("Pod", "default", "digits-chief-0-0")


@pytest.mark.parametrize(("said", "seconds"), [({"Retry-After": "7"}, 7), ({"Retry-After": "Mon"}, 0), ({}, 0)])
async def test_an_error_says_when_to_ask_again(said: dict[str, str], seconds: float) -> None:
    """As API Priority and Fairness does, in plain text, where an API server has too much to do."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=429, text="Too many requests, please try again later.", headers=said)

    async with asking(answer) as kube:
        with pytest.raises(ClusterError, match="Too many requests") as caught:
            await kube.get("Pod", "default", "digits-chief-0-0")
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize("kind", ["LocalQueue", "ClusterQueue"])
async def test_a_queue_that_may_not_be_seen_is_as_if_it_were_not_there(kind: str) -> None:
    """As with the rights of the release before: its jobs come near each other by affinity, as they did."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"reason": "Forbidden", "message": f"{kind} is forbidden"}, status=403)

    async with asking(answer) as kube:
        assert await kube.get(kind, "default", "team-a") is None
        with pytest.raises(ClusterError, match="forbidden"):
            await kube.get("ResourceFlavor", None, "spot")


async def test_a_token_that_cannot_be_read_is_a_call_that_failed(tmp_path: Path):
    """A service account's token is replaced while the operator runs; here its file is empty for a moment."""
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("secret")
    ca.write_text("certificate")
    where = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    loader = InClusterConfigLoader(str(token), str(ca), environ=where)
    configuration = client.Configuration()
    loader.load_and_set(configuration)
    configuration.ssl_ca_cert = None
    token.write_text("")
    loader.token_expires_at = datetime.min
    async with client.ApiClient(configuration) as api_client, Transport(api_client, 5) as transport:
        with pytest.raises(ClusterError, match="token"):
            await Kube(api_client, transport).get("Pod", "default", "digits-chief-0-0")


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
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(NoCluster):
        async with connect():
            pass


async def test_an_operator_in_a_pod_does_not_warn_that_it_has_no_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    where = str(tmp_path / "none")
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", where)
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("secret")
    ca.write_text(certifi.contents())
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(ca))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    async with connect() as kube:
        assert (await kube.credentials()).server == "https://127.0.0.1:1"
    assert caplog.messages == []


async def test_a_home_that_is_not_to_be_looked_into_has_no_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /root for everybody else, where HOME says so all the same."""
    where, stat = str(tmp_path / "root" / ".kube" / "config"), os.stat

    def refusing(path: Any, **how: Any) -> os.stat_result:
        if str(path) == where:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), where)
        return stat(path, **how)

    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", where)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(os, "stat", refusing)
    with pytest.raises(NoCluster):
        async with connect():
            pass
