# SPDX-License-Identifier: Apache-2.0
"""Commands against an API server with a plan of faults: they outlive what passes, and say what does not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtjob.client import patience
from tests.unit.operator.client.api_server import ApiServer, Fault, serving
from tests.unit.operator.client.test_kubeconfig import plugin
from tests.unit.operator.client.verbs.jobs import JOBS, PODS, pod, stored

FAULTS = [Fault(429, "0"), Fault(500), Fault(502), Fault(503, "0"), Fault(504), Fault(), Fault(broken=b'{"type": "MO')]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """The one that commands ask if they are not told otherwise."""
    monkeypatch.setattr(patience, "FIRST_SECONDS", 0.001)
    for server in serving():
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path)))
        server.answer(f"GET {JOBS}/digits", stored())
        yield server


def changed(phase: str, **metadata: Any) -> list[dict[str, Any]]:
    found = stored(phase)
    found["metadata"] |= {"resourceVersion": "2", **metadata}
    return [{"type": "MODIFIED", "object": found}]


def test_a_wait_outlives_tokens_that_expire(dtjob, server: ApiServer, tmp_path: Path) -> None:
    """A plugin whose answer has no time of expiry, and a watch that outlives its token."""
    file = server.kubeconfig(tmp_path, **plugin(tmp_path, None))
    server.tokens = {"t2"}
    server.answer(f"WATCH {JOBS}", changed("Succeeded"))
    assert dtjob("wait", "digits", "--kubeconfig", file)[0] == 0
    assert (tmp_path / "asked").read_text() == "xx"


def test_credentials_that_stay_wrong_are_said_at_once(dtjob, server: ApiServer, tmp_path: Path) -> None:
    server.tokens = set()
    code, _, err = dtjob("wait", "digits", "--kubeconfig", server.kubeconfig(tmp_path, **plugin(tmp_path, None)))
    assert code
    assert "does not accept your credentials" in err
    assert len(server.asked) == 2


@pytest.mark.parametrize("words", ["wait digits", "logs digits -f", "top digits"])
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_commands_that_wait_outlive_each_fault(dtjob, server: ApiServer, words: str, fault: Fault) -> None:
    server.answer(f"GET {JOBS}/digits", stored(), stored(), fault, stored())
    server.answer(f"WATCH {JOBS}", fault, fault, changed("Succeeded"))
    server.answer(f"GET {PODS}", {"items": [], "metadata": {"resourceVersion": "1"}})
    assert dtjob(*words.split())[0] == 0


def test_an_outage_is_told_and_its_end_too(dtjob, server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SAY_SECONDS", 0.0)
    server.answer(f"GET {JOBS}/digits", Fault(503, "0"), stored("Succeeded"))
    code, _, err = dtjob("wait", "digits")
    assert code == 0
    assert err.splitlines() == [
        "dtjob: waiting for the cluster, 0 s so far: the server is currently unable to handle the request",
        "dtjob: the cluster answers again",
    ]


@pytest.mark.parametrize("fault", [Fault(429, "0"), Fault(503, "0"), Fault(502)], ids=str)
def test_a_short_command_is_tried_again(dtjob, server: ApiServer, fault: Fault) -> None:
    server.answer(f"GET {JOBS}", fault, {"items": [stored()], "metadata": {}})
    assert dtjob("list")[0] == 0


def test_a_short_command_gives_up_after_a_while(dtjob, server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "CALL_SECONDS", 0.5)
    server.answer(f"GET {JOBS}", Fault(503))
    code, _, err = dtjob("list")
    assert code
    assert err.endswith("dtjob: the server is currently unable to handle the request\n")
    assert len(server.asked) > 1


def test_a_wait_ends_in_time_during_an_outage(dtjob, server: ApiServer) -> None:
    server.answer(f"GET {JOBS}/digits", Fault(503, "60"))
    assert dtjob("wait", "digits", "--timeout", "1s")[0] == 124


@pytest.mark.parametrize(
    ("fault", "times"), [(Fault(429, "0"), 2), (Fault(503, "0"), 2), (Fault(503), 1), (Fault(), 1)]
)
def test_an_object_is_created_again_only_if_the_server_has_not_begun(
    dtjob, server: ApiServer, good: Path, fault: Fault, times: int
) -> None:
    server.answer(f"POST {JOBS}", fault, stored())
    code, _, _ = dtjob("submit", good)
    assert (code == 0, len(server.asked)) == (times == 2, times)


def test_a_manifest_goes_to_its_own_namespace(dtjob, server: ApiServer, good: Path) -> None:
    """As kubectl sends it. It was sent to that of the context, where an API server refuses it."""
    good.write_text(good.read_text().replace("{name: digits}", "{name: digits, namespace: other}"))
    server.answer(f"POST {JOBS.replace('/team/', '/other/')}", stored())
    assert dtjob("submit", good)[:2] == (0, "digits is submitted to namespace other\n")
    code, _, err = dtjob("submit", good, "-n", "third")
    assert (code, "its namespace is other, and not third" in err) == (2, True)


def test_the_others_are_deleted_when_one_is_not_there(dtjob, server: ApiServer) -> None:
    server.answer(f"DELETE {JOBS}/digits", {})
    code, out, err = dtjob("delete", "none", "digits", "less")
    assert (code, out, len(err.splitlines())) == (3, "digits is deleted\n", 2)


def test_followed_logs_outlive_a_fault_of_each_of_their_calls(dtjob, server: ApiServer) -> None:
    """A pod that begins during the outage is followed, and a log that breaks off goes on after its last line."""
    first = {"items": [pod("worker-0")], "metadata": {"resourceVersion": "1"}}
    both = {"items": [pod("worker-0"), pod("worker-1")], "metadata": {"resourceVersion": "2"}}
    server.answer(f"GET {PODS}", Fault(503, "0"), first, Fault(503, "0"), both)
    server.answer(f"WATCH {PODS}", Fault(503, "0"), [])
    one, two = b"2026-11-23T12:00:01Z a\n", b"2026-11-23T12:00:02Z b\n"
    server.answer(f"GET {PODS}/digits-worker-0-0/log", Fault(503, "0"), Fault(broken=one), one + two)
    server.answer(f"GET {PODS}/digits-worker-0-0", pod("worker-0"), pod("worker-0", state={"terminated": {}}))
    server.answer(f"GET {PODS}/digits-worker-1-0/log", one)
    server.answer(f"GET {JOBS}/digits", stored(), stored(), *[Fault(503, "0")] * 9, stored("Succeeded"))
    server.answer(f"WATCH {JOBS}", Fault(503, "0"))
    code, out, _ = dtjob("logs", "digits", "-f")
    assert code == 0
    assert sorted(" ".join(line.split()) for line in out.splitlines()) == [
        "worker-0 | a",
        "worker-0 | b",
        "worker-1 | a",
    ]


@pytest.mark.parametrize(
    ("fault", "code"),
    [(Fault(401), 3), (Fault(403), 3), (Fault(404), 3), (Fault(422), 3), (Fault(503), 4), (Fault(), 4)],
)
def test_exit_codes_tell_a_refusal_from_an_outage(
    dtjob, server: ApiServer, monkeypatch: pytest.MonkeyPatch, fault: Fault, code: int
) -> None:
    monkeypatch.setattr(patience, "CALL_SECONDS", 0.0)
    server.answer(f"GET {JOBS}/digits", fault)
    found, _, err = dtjob("status", "digits")
    assert (found, fault.code in (0, 401) or fault.message in err) == (code, True)
    assert dtjob("status", "NO NAME")[0] == 2


def test_a_cluster_without_the_definition_is_said(dtjob, server: ApiServer) -> None:
    server.answer(f"GET {JOBS}", b"404 page not found\n", code=404)
    code, _, err = dtjob("list")
    assert (code, "is dtjob installed there? dtjob doctor says more" in err) == (3, True)


@pytest.mark.parametrize("words", ["logs digits -f", "top digits"])
def test_a_job_that_waits_for_its_user_is_not_followed_for_ever(dtjob, server: ApiServer, words: str) -> None:
    found = stored("Pending")
    found["status"] |= {"reason": "ImageMissing", "message": "spec.image is left out"}
    server.answer(f"GET {JOBS}/digits", found)
    server.answer(f"GET {PODS}", {"items": [], "metadata": {"resourceVersion": "1"}})
    code, out, err = dtjob(*words.split())
    assert (code, "digits: Pending (ImageMissing): spec.image is left out" in out + err) == (1, True)
