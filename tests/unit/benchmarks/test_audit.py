"""What an operator asked of the API server, from lines of an audit log."""

from __future__ import annotations

import json
from pathlib import Path

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
