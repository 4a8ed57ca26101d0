# SPDX-License-Identifier: Apache-2.0
"""Calls to an API server: paths, pages, watches, and errors in words."""

import http.client
import multiprocessing
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dtjob.client import connection
from dtjob.client.cluster import Cluster, connect
from dtjob.client.errors import Ended, NoCluster, NotReached, Refused
from tests.unit.operator.client.api_server import ApiServer, Fault
from tests.unit.operator.client.verbs.jobs import JOBS, PODS


def test_the_pages_of_a_list_are_joined(server: ApiServer, cluster: Cluster) -> None:
    pages = [{"items": [{"a": 1}], "metadata": {"continue": "more"}}, {"items": [{"a": 2}], "metadata": {}}]
    server.answer(f"GET {PODS}", *pages)
    assert cluster.list("Pod", "app=x") == [{"a": 1}, {"a": 2}]
    assert "labelSelector=app%3Dx" in server.asked[0][1]
    assert "continue=more" in server.asked[1][1]


def test_objects_are_made_changed_and_deleted(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"POST {JOBS}", {"made": True})
    server.answer(f"PATCH {JOBS}/a", {"changed": True})
    server.answer(f"DELETE {JOBS}/a", {})
    assert cluster.create({"kind": "DistributedTrainingJob", "metadata": {"name": "a"}}) == {"made": True}
    assert cluster.patch("DistributedTrainingJob", "a", "u", {"spec": {"suspend": True}}) == {"changed": True}
    cluster.delete("DistributedTrainingJob", "a", "u", seconds=0)
    assert [body for _, _, body in server.asked][1:] == [
        {"spec": {"suspend": True}, "metadata": {"uid": "u"}},
        {"propagationPolicy": "Background", "preconditions": {"uid": "u"}, "gracePeriodSeconds": 0},
    ]


def test_a_watch_gives_changes_and_raises_its_error(server: ApiServer, cluster: Cluster) -> None:
    gone = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}
    server.answer(f"WATCH {PODS}", [{"type": "ADDED", "object": {"a": 1}}, gone])
    watch = cluster.watch("Pod", "7")
    assert next(watch) == ("ADDED", {"a": 1})
    with pytest.raises(Refused, match="too old"):
        next(watch)


def test_the_given_namespace_takes_precedence_over_the_contexts(cluster: Cluster, server: ApiServer, tmp_path) -> None:
    assert cluster.namespace == "team"
    assert connect(str(server.kubeconfig(tmp_path)), None, "other").namespace == "other"


def test_a_connection_that_was_idle_is_not_used_again(
    server: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server closes idle connections, and a POST on one cannot be repeated."""
    server.answer(f"GET {PODS}/a", {})
    for _ in range(2):
        cluster.get("Pod", "a")
    assert server.connections == 1
    monkeypatch.setattr(connection, "KEPT_SECONDS", -1.0)
    cluster.get("Pod", "a")
    assert server.connections == 2


def test_a_process_that_was_forked_has_a_connection_of_its_own(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"GET {PODS}/a", {})
    cluster.get("Pod", "a")
    for function, arguments in ((cluster.get, ("Pod", "a")), (cluster.connection.end, ())):
        child = multiprocessing.get_context("fork").Process(target=function, args=arguments)
        child.start()
        child.join()
        assert child.exitcode == 0
    cluster.get("Pod", "a")
    assert server.connections == 2


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_during_an_answer_leaves_the_next_call_alone(
    server: ApiServer, cluster: Cluster, error: BaseException
) -> None:
    """The disk is full, or Ctrl-C is pressed: the cluster is not to blame."""

    def fail(_: bytes) -> None:
        raise error

    server.answer(f"GET {PODS}/a/log", b"a line\n")
    with pytest.raises(type(error)) as raised:
        cluster.connection.raw("GET", f"{PODS}/a/log", sink=fail)
    assert raised.value is error
    assert cluster.connection.raw("GET", f"{PODS}/a/log") == b"a line\n"


def test_the_proxy_is_the_kubeconfigs_or_the_environments(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "")
    assert cluster.connection.access.proxy == "http://proxy:3128"
    for excepted in ("127.0.0.1", ".svc,127.0.0.0/8"):
        monkeypatch.setenv("no_proxy", excepted)
        assert cluster.connection.access.proxy is None


@pytest.mark.parametrize("own", [True, False], ids=["of the kubeconfig", "of the environment"])
def test_a_proxy_gets_its_user_and_password(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    monkeypatch.setenv("no_proxy", "")
    with socket.create_server(("127.0.0.1", 0)) as proxy, ThreadPoolExecutor(1) as pool:
        url = f"http://me:p%40ss@127.0.0.1:{proxy.getsockname()[1]}"
        file = server.kubeconfig(tmp_path)
        if own:
            file.write_text(file.read_text().replace("server:", f"proxy-url: {url}\n    server:"))
        else:
            monkeypatch.setenv("http_proxy", url)

        proxy.settimeout(10)

        def asked() -> bytes:
            link, _ = proxy.accept()
            with link:
                said = link.recv(4096)
                link.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return said

        said = pool.submit(asked)
        with pytest.raises(NotReached, match="407"):
            connect(str(file)).get("Pod", "a")
        assert b"Proxy-Authorization: Basic bWU6cEBzcw==" in said.result()


@pytest.mark.parametrize("url", ["socks5://me:secret@proxy:1080", "https://me:secret@proxy"])
def test_a_proxy_of_another_kind_is_refused_without_its_password(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", url)
    with pytest.raises(NoCluster, match="begins with http://") as said:
        cluster.get("Pod", "a")
    assert "secret" not in str(said.value)


@pytest.mark.timeout(20)  # the server holds the watch for longer
def test_a_call_that_connects_while_the_client_ends_ends_too(
    server: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`end` finds no socket yet. A watch would otherwise hold its thread for minutes."""
    server.answer(f"WATCH {PODS}", Fault(hold=True))
    connect_ = http.client.HTTPConnection.connect

    def connect_late(link: http.client.HTTPConnection) -> None:
        cluster.connection.end()
        connect_(link)

    monkeypatch.setattr(http.client.HTTPConnection, "connect", connect_late)
    with pytest.raises(Ended):
        next(cluster.watch("Pod", "7"))
