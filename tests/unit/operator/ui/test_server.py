# SPDX-License-Identifier: Apache-2.0
"""The web server of the page, over real connections."""

import http.client
import json
import socket
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import pytest

from dtjob.bad_input import BadInput
from dtjob.ui.server import serving
from tests.unit.operator.client.verbs.jobs import job
from tests.unit.operator.ui.one_job import HOSTILE, OneJob


@pytest.fixture
def source() -> OneJob:
    return OneJob()


@pytest.fixture
def address(source: OneJob) -> Iterator[str]:
    with serving(source) as found:
        yield found


def asked(address: str, path: str = "", method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    connection.request(method, parts.path + path, headers=headers)
    return connection.getresponse()


def events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    """The events of a stream, as a browser reads them: by lines."""
    assert answer.headers["Content-Type"] == "text/event-stream"
    while line := answer.readline().decode():
        if line.startswith("event: "):
            data = answer.readline().decode()
            assert answer.readline() == b"\n"
            yield line[7:-1], json.loads(data.removeprefix("data: "))


def test_the_page_has_a_policy_that_lets_no_other_script_run(address: str) -> None:
    answer = asked(address)
    policy = dict(one.strip().partition(" ")[::2] for one in answer.headers["Content-Security-Policy"].split(";"))
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["frame-ancestors"] == "'none'"


@pytest.mark.parametrize("path", ["", "main.js", "no-such-file", "events/jobs", "jobs/team/digits.yaml"])
def test_each_answer_keeps_other_sites_out(address: str, path: str) -> None:
    answer = asked(address, path, Origin="http://evil.example")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "0.0.0.0", "evil.example:80@x"])
def test_another_name_of_the_host_is_refused(address: str, host: str) -> None:
    """A page of the web that lets its name lead to 127.0.0.1 asks under that name."""
    assert asked(address, Host=host).status == 403
    assert asked(address, "events/jobs", Host=host).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:1234", "localhost", "LOCALHOST:80"])
def test_a_tunnel_may_have_another_port(address: str, host: str) -> None:
    assert asked(address, Host=host).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("path", ["", "events/jobs", "events/jobs/team/digits", "jobs/team/digits.yaml"])
def test_nothing_but_get_is_answered(address: str, path: str, method: str) -> None:
    assert asked(address, path, method).status == 405


def test_a_user_without_the_address_sees_nothing(address: str) -> None:
    there = urlsplit(address)
    for path in ("/", "/events/jobs", "/x/events/jobs", f"/{there.path.strip('/')[:-1]}/"):
        assert asked(f"http://{there.netloc}", path).status == 404


def test_the_server_listens_to_this_machine_only(address: str) -> None:
    assert urlsplit(address).hostname == "127.0.0.1"
    with socket.socket() as other, pytest.raises(ConnectionRefusedError):
        other.connect(("127.0.0.2", urlsplit(address).port))


@pytest.mark.parametrize("path", ["../server.py", "%2e%2e/server.py", "..%2fserver.py", "uPlot.LICENSE"])
def test_only_the_files_of_the_page_are_served(address: str, path: str) -> None:
    assert asked(address, path).status == 404


def test_the_jobs_come_first_and_then_those_that_change(source: OneJob, address: str) -> None:
    found = events(asked(address, "events/jobs"))
    assert next(found) == ("state", {"title": "a test", "trouble": ""})
    name, first = next(found)
    assert (name, [row["name"] for row in first["rows"]]) == ("jobs", ["digits"])
    source.hub.take([("DELETED", job())])
    assert ("jobs", {"rows": [], "gone": [["team", "digits"]]}) in (next(found), next(found))


def test_hostile_texts_stay_within_their_event(source: OneJob, address: str) -> None:
    found = dict(islice(events(asked(address, "events/jobs/team/digits")), 4))
    assert found["job"]["message"] == HOSTILE
    assert found["job"]["tasks"][0][1] == HOSTILE
    assert found["curves"]["curves"][0]["name"] == HOSTILE
    assert found["log"]["lines"] == [HOSTILE]


def test_the_log_is_that_of_the_task_that_is_asked_for(source: OneJob, address: str) -> None:
    next(events(asked(address, "events/jobs/team/digits?task=worker-0")))
    next(events(asked(address, "events/jobs/team/digits")))
    assert source.tasks == ["worker-0", None]


def test_a_refusal_of_the_cluster_is_shown(address: str) -> None:
    name, said = next(events(asked(address, "events/jobs/team/digits?task=worker-9")))
    assert (name, said["trouble"]) == ("state", "you may not list pods")


def test_a_job_that_is_gone_is_said_to_be(source: OneJob, address: str) -> None:
    found = events(asked(address, "events/jobs/team/digits"))
    source.hub.take([("DELETED", job())])
    assert next(name for name, _ in found if name == "gone")


def test_the_manifest_is_plain_text(address: str) -> None:
    answer = asked(address, "jobs/team/digits.yaml")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert b"strategy: MultiWorkerMirrored" in answer.read()
    assert asked(address, "jobs/team/other.yaml").status == 404


def test_the_end_of_the_page_ends_its_streams_and_views(source: OneJob) -> None:
    with serving(source) as address:
        found = events(asked(address, "events/jobs/team/digits"))
        next(found)
    assert [name for name, _ in found][:1] in ([], ["job"])
    assert source.closed == 1


def test_a_taken_port_is_the_users_to_change() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=f"--port: {port} cannot be used"), serving(OneJob(), port):
            pass
