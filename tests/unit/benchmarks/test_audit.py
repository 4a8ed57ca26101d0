# SPDX-License-Identifier: Apache-2.0
"""What an operator asked of the API server, from lines of an audit log."""

import json
from pathlib import Path

import pytest

from benchmarks.operators.audit import AuditLog, count, requests


def line(user: str, verb: str, resource: str, subresource: str | None = None) -> bytes:
    where = {"resource": resource, **({"subresource": subresource} if subresource else {})}
    return json.dumps({"user": {"username": user}, "verb": verb, "objectRef": where}).encode() + b"\n"


LINES = [
    line("dtjob", "create", "pods"),
    line("dtjob", "create", "pods"),
    line("dtjob", "update", "distributedtrainingjobs", "status"),
    line("dtjob", "create", "events"),
    line("dtjob", "delete", "pods"),
    line("dtjob", "list", "pods"),
    line("dtjob", "watch", "pods"),
    line("dtjob", "update", "leases"),
    line("tfjob", "create", "services"),
    json.dumps({"user": {"username": "dtjob"}, "verb": "get"}).encode(),  # discovery
]


def test_calls_are_counted_by_verb_and_resource():
    asked = count("dtjob", LINES)
    assert asked["create", "pods"] == 2
    assert asked["update", "distributedtrainingjobs/status"] == 1
    assert ("create", "services") not in asked
    assert sum(asked.values()) == 8


def test_requests_are_those_that_a_job_costs_besides_events_and_deletes():
    assert requests(count("dtjob", LINES)) == 3


def test_a_log_is_read_from_a_place_on(tmp_path: Path):
    log = AuditLog(tmp_path / "audit.log")
    assert log.end() == 0
    (tmp_path / "audit.log").write_bytes(b"".join(LINES[:5]))
    since = log.end()
    (tmp_path / "audit.log").write_bytes(b"".join(LINES))
    assert dict(log.asked("tfjob", since)) == {("create", "services"): 1}


def created(user: str, name: str, at: str, code: int = 201, resource: str = "pods", sub: str | None = None) -> bytes:
    where = {"resource": resource, "name": name, **({"subresource": sub} if sub else {})}
    event = {
        "user": {"username": user},
        "verb": "create",
        "objectRef": where,
        "responseStatus": {"code": code},
        "stageTimestamp": f"2026-11-23T08:00:{at}Z",
    }
    return json.dumps(event).encode() + b"\n"


def test_the_audit_log_gives_the_times_of_created_objects_from_a_position_on(tmp_path: Path):
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_bytes(created("dtjob", "a-1-worker-0", "01.5"))
    pods = log.created("dtjob", "pods")
    assert pods.look() == 0
    lines = [
        created("dtjob", "a-1-worker-1", "04.25"),
        created("dtjob", "a-1-chief-0", "03.25"),
        created("dtjob", "a-10-chief-0", "05.25"),
        created("tfjob", "a-1-worker-2", "06.25"),
        created("dtjob", "a-1-worker-3", "06.25", code=403),
        created("dtjob", "a-1-worker-3", "06.25", resource="services"),
        created("dtjob", "a-1-worker-3", "06.25", sub="binding"),
        created("dtjob", "a-1-worker-4", "07.25")[:-20],  # being written
    ]
    with log.path.open("ab") as file:
        file.write(b"".join(lines))
    assert pods.wait(3) - pods.wait(1) == 2.0
    assert pods.wait(2, "a-1") - pods.wait(1, "a-1") == 1.0
    assert sorted(pods.when) == ["a-1-chief-0", "a-1-worker-1", "a-10-chief-0"]
    with pytest.raises(TimeoutError, match="2 of 3 pods"):
        pods.wait(3, "a-1", timeout=0)
    with log.path.open("ab") as file:
        file.write(created("dtjob", "a-1-worker-4", "07.25")[-20:])
    assert pods.look() == 4
