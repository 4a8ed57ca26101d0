# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.rendezvous: who may start together, told by a clock that the test turns."""

import re
from dataclasses import replace

import pytest

from dtjob_trainer.rendezvous.claims import MOST_CLAIMS
from dtjob_trainer.rendezvous.messages import Registration
from dtjob_trainer.rendezvous.records import name_some
from dtjob_trainer.rendezvous.rendezvous import Rendezvous
from tests.unit.trainer.rendezvous.groups import GROUP, all_wait, begun, mirrored, parameter_server, registration


def test_all_go_when_the_last_has_come() -> None:
    rendezvous = mirrored()
    assert rendezvous.register(registration("worker-1"), None, 0).kind == "wait"
    answer = rendezvous.register(registration("chief-0"), None, 0)
    assert (answer.kind, answer.message) == ("wait", "waiting for worker-0")
    before = rendezvous.revision
    assert rendezvous.register(registration("worker-0"), None, 1).kind == "go"
    assert rendezvous.revision > before, "held answers must be released"
    assert rendezvous.answer(registration("worker-1"), 1) == rendezvous.answer(registration("chief-0"), 1)


def crashed(task: str, incarnation: int = 1, attempt: int = 0) -> Registration:
    again = registration(task, attempt=attempt, incarnation=incarnation, generation=1)
    return replace(again, crash="SIGKILL", step=40)


@pytest.mark.parametrize("order", [("worker-1", "worker-0", "chief-0"), ("worker-0", "chief-0", "worker-1")])
def test_a_crash_is_the_cause_for_all_tasks_and_counted_once(order: tuple[str, ...]) -> None:
    """`order` is that in which they come back: the one that crashed, worker-1, may be faster than its peers or not."""
    rendezvous = begun()
    for task in GROUP:
        rendezvous.register(registration(task, "running", generation=1), None, 1)
    back = {task: registration(task, incarnation=1, generation=1) for task in GROUP} | {"worker-1": crashed("worker-1")}
    for task in order:
        rendezvous.register(back[task], None, 2)
    goes = [rendezvous.register(back[task], None, 3) for task in order]
    assert {(one.kind, one.message, one.changed) for one in goes} == {
        ("go", "worker-1 was killed (SIGKILL)", ("worker-1",))
    }
    assert rendezvous.crashes.to_json() == {"count": 1, "task": "worker-1", "signal": "SIGKILL", "step": 40}


def test_a_crash_is_reported_to_a_peer_that_still_trains() -> None:
    rendezvous = begun()
    rendezvous.register(crashed("worker-1"), None, 1)
    answer = rendezvous.register(registration("worker-0", "running", generation=1), None, 1)
    assert (answer.kind, answer.message) == ("restart", "worker-1 was killed (SIGKILL)")


def test_a_pod_that_follows_on_one_that_crashed_was_lost() -> None:
    rendezvous = begun()
    rendezvous.register(crashed("worker-1"), None, 1)
    rendezvous.register(registration("worker-1", attempt=1), None, 2)
    for task in ("chief-0", "worker-0"):
        rendezvous.register(registration(task, incarnation=1, generation=1), None, 2)
    answer = rendezvous.register(registration("chief-0", incarnation=1, generation=1), None, 2)
    assert (answer.kind, answer.message, answer.changed) == ("go", "worker-1 was lost", ("worker-1",))


def test_tasks_that_crash_together_are_one_restart() -> None:
    rendezvous = begun()
    for task in ("worker-0", "worker-1", "chief-0"):
        rendezvous.register(crashed(task), None, 1)
    assert rendezvous.crashes.to_json() == {"count": 1, "task": "worker-0", "signal": "SIGKILL", "step": 40}
    for task in GROUP:
        rendezvous.register(crashed(task), None, 2)  # they wait, and hear that they may go
    rendezvous.register(replace(crashed("chief-0", incarnation=2), generation=2), None, 3)
    assert (rendezvous.crashes.count, rendezvous.crashes.task) == (2, "chief-0")


def test_a_crash_after_a_peers_loss_is_no_restart_of_its_own() -> None:
    """TensorFlow may abort where a peer is lost."""
    rendezvous = begun()
    rendezvous.register(registration("worker-1", attempt=1), None, 1)
    rendezvous.register(crashed("worker-0"), None, 2)
    preempted = begun()
    preempted.register(registration("worker-1", "preempted", generation=1), None, 1)
    preempted.register(crashed("worker-0"), None, 2)
    assert (rendezvous.crashes.count, preempted.crashes.count) == (0, 0)


def test_crashes_that_an_earlier_chief_counted_are_not_counted_again() -> None:
    rendezvous = mirrored()
    rendezvous.register(crashed("worker-1", incarnation=3), None, 0)
    rendezvous.register(crashed("worker-1", incarnation=3), None, 1)
    assert rendezvous.crashes.count == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"uid": "other"}, "worker-1 is of another job than the chief task (chief-0)"),
        ({"cluster_hash": "old"}, "worker-1 has another cluster spec than the chief task (chief-0)"),
        ({"task": "worker-7"}, "worker-7 is not in the cluster"),
    ],
)
def test_a_registration_of_another_job_or_cluster_is_refused_with_the_difference(
    change: dict[str, str], words: str
) -> None:
    rendezvous = mirrored()
    answer = rendezvous.register(replace(registration("worker-1"), **change), None, 0)  # type: ignore[arg-type]
    assert answer.kind == "refused"
    assert words in answer.message
    assert not {"uid", "hash"} & set(re.findall(r"\w+", answer.message))
    assert "worker-1" in rendezvous.missing(0)


def test_a_member_that_comes_back_ends_the_generation() -> None:
    rendezvous = begun()
    running = [registration(task, "running", generation=1) for task in GROUP]
    assert [rendezvous.register(each, None, 1).kind for each in running] == ["continue"] * 3
    rendezvous.register(registration("worker-1", attempt=1), None, 2)
    answers = [rendezvous.register(each, None, 2) for each in running[:2]]
    assert [(answer.kind, answer.message) for answer in answers] == [("restart", "worker-1 was lost")] * 2
    for task in GROUP[:2]:
        rendezvous.register(registration(task, incarnation=1, generation=1), None, 3)
    go = rendezvous.register(registration("worker-1", attempt=1), None, 3)
    assert (go.kind, go.generation, go.changed, go.message) == ("go", 2, ("worker-1",), "worker-1 was lost")


def test_a_restart_of_all_processes_replaces_no_task() -> None:
    rendezvous = begun()
    answer = all_wait(rendezvous, incarnation=1)[0]
    assert (answer.kind, answer.generation, answer.changed) == ("go", 2, ())


def test_a_preemption_is_sent_to_the_other_tasks_and_named_as_the_cause() -> None:
    rendezvous = begun()
    running = [registration(task, "running", generation=1) for task in GROUP]
    before = rendezvous.revision
    leaving = rendezvous.register(replace(running[2], phase="preempted"), None, 1)
    assert (leaving.kind, leaving.preempted) == ("continue", ())
    assert rendezvous.revision > before
    assert rendezvous.answer(running[1], 1).preempted == ("worker-1",)
    for task in GROUP[:2]:
        rendezvous.register(registration(task, incarnation=1, generation=1), None, 2)
    answer = rendezvous.register(registration("worker-1", attempt=1), None, 3)
    assert (answer.kind, answer.message, answer.changed) == ("go", "worker-1 was told to end", ("worker-1",))


def test_a_new_chief_asks_those_who_still_run_to_start_again() -> None:
    rendezvous = mirrored()
    rendezvous.register(registration("chief-0", attempt=1), None, 0)
    answer = rendezvous.register(registration("worker-0", "running", generation=7), None, 0)
    assert (answer.kind, answer.message) == ("restart", "chief-0 was lost")
    rendezvous.register(registration("worker-0", incarnation=1, generation=7), None, 0)
    answer = rendezvous.register(registration("worker-1", incarnation=1, generation=7), None, 0)
    assert (answer.kind, answer.generation) == ("go", 8), "generations go on where the old chief stopped"


def test_the_end_of_training_is_sent_to_all_tasks() -> None:
    rendezvous = begun()
    rendezvous.finish()
    assert rendezvous.register(registration("worker-0", "running", generation=1), None, 0).kind == "done"
    assert not rendezvous.all_know()
    assert rendezvous.register(registration("worker-1", attempt=1), None, 0).kind == "done"
    assert rendezvous.all_know()


def test_a_name_must_resolve_to_where_the_task_registered_from() -> None:
    rendezvous = mirrored()
    rendezvous.register(registration("worker-0"), "10.0.0.1", 0)
    rendezvous.register(registration("worker-1"), "10.0.0.2", 0)
    rendezvous.register(registration("chief-0"), None, 0)
    assert rendezvous.addresses_to_check("chief-0", 0) == []
    assert rendezvous.addresses_to_check("worker-1", 0) == ["10.0.0.2"]
    rendezvous.name_resolved("worker-0", "v", ["10.0.0.1"], 0)
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.9"], 0)
    answer = rendezvous.answer(registration("chief-0"), 0)
    assert answer.message == "waiting for worker-1 (its name w resolves to 10.0.0.9, but it registered from 10.0.0.2)"
    rendezvous.name_failed("worker-1", "its name w does not resolve: none")
    assert "does not resolve" in rendezvous.answer(registration("chief-0"), 0).message
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.2"], 0)
    assert rendezvous.answer(registration("chief-0"), 0).kind == "go"


def in_a_round(addresses: dict[str, str]) -> Rendezvous:
    """All run in generation 1, each at the address to which its name leads."""
    rendezvous = mirrored()
    rendezvous.register(registration("chief-0"), None, 0)
    for task, address in addresses.items():
        rendezvous.register(registration(task), address, 0)
        rendezvous.name_resolved(task, task, [address], 0)
    for task, address in ("chief-0", None), *addresses.items():
        assert rendezvous.register(registration(task, "running", generation=1), address, 0).kind == "continue"
    return rendezvous


ADDRESSES = {"worker-0": "10.0.0.1", "worker-1": "10.0.0.2"}


@pytest.mark.parametrize("attempt", [1, 10**9])
def test_a_newer_attempt_from_another_address_replaces_no_task(attempt: int) -> None:
    """One request of a stranger, and every peer would be refused for ever."""
    rendezvous = in_a_round(ADDRESSES)
    before = rendezvous.revision
    for task in GROUP:
        stranger = replace(registration(task, attempt=attempt, generation=10**9), supervisor="s", incarnation=9)
        assert rendezvous.register(stranger, "10.9.9.9", 1).kind == "wait"
        rendezvous.name_resolved(task, task, [ADDRESSES.get(task, "10.0.0.3")], 1)
    assert (rendezvous.revision, rendezvous.generation) == (before, 1)
    for task, address in ADDRESSES.items():
        assert rendezvous.register(registration(task, "running", generation=1), address, 2).kind == "continue"


def test_a_successor_counts_when_its_name_leads_to_it() -> None:
    rendezvous = in_a_round(ADDRESSES)
    assert rendezvous.register(registration("worker-1", attempt=1), "10.0.0.3", 1).kind == "wait"
    assert rendezvous.addresses_to_check("worker-1", 1) == ["10.0.0.3"]
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.2"], 1)  # a name server that lags behind
    assert rendezvous.addresses_to_check("worker-1", 1) == ["10.0.0.3"]
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.3"], 2)
    assert rendezvous.addresses_to_check("worker-1", 2) == []
    answer = rendezvous.register(registration("chief-0", "running", generation=1), None, 2)
    assert (answer.kind, answer.message) == ("restart", "worker-1 was lost")
    # its predecessor, which its name still leads to as well, is told so
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.2", "10.0.0.3"], 2)
    old = rendezvous.register(registration("worker-1", "running", generation=1), "10.0.0.2", 2)
    assert (old.kind, old.message) == ("refused", "attempt 0 of worker-1 was replaced by attempt 1")


def test_a_successor_that_its_name_does_not_lead_to_is_waited_for_by_that_reason() -> None:
    rendezvous = in_a_round(ADDRESSES)
    successor = registration("worker-1", attempt=1)
    rendezvous.register(successor, "10.0.0.3", 1)
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.2"], 1)
    lags = "worker-1 (its name w resolves to 10.0.0.2, but it registered from 10.0.0.3)"
    assert lags in rendezvous.missing(1)
    assert lags in rendezvous.missing(2 + rendezvous.lease), "its predecessor is not heard any more"
    rendezvous.name_failed("worker-1", "its name w does not resolve: none")
    assert "worker-1 (its name w does not resolve: none)" in rendezvous.missing(2 + rendezvous.lease)
    assert rendezvous.addresses_to_check("worker-1", 2 + rendezvous.lease) == []
    assert "worker-1" in rendezvous.missing(2 + rendezvous.lease)


def test_a_successor_that_went_away_before_its_name_led_to_it_does_not_count() -> None:
    rendezvous = in_a_round(ADDRESSES)
    successor = registration("worker-1", attempt=1)
    rendezvous.register(successor, "10.0.0.3", 1)
    rendezvous.disconnected(successor)
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.3"], 2)
    assert rendezvous.register(registration("chief-0", "running", generation=1), None, 2).kind == "continue"
    assert "worker-1 (still running)" in rendezvous.missing(2)


def test_a_name_server_that_lags_behind_does_not_bring_a_predecessor_back() -> None:
    """As that of a node which was cut off: it runs on beside its successor."""
    rendezvous = in_a_round(ADDRESSES)
    rendezvous.register(registration("worker-1", attempt=1), "10.0.0.3", 1)
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.3"], 1)
    predecessor = registration("worker-1", "running", generation=1)
    rendezvous.register(predecessor, "10.0.0.2", 2)
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.2"], 2)
    answer = rendezvous.register(predecessor, "10.0.0.2", 2)
    assert (answer.kind, answer.message) == ("refused", "attempt 0 of worker-1 was replaced by attempt 1")
    rendezvous.register(registration("worker-1", attempt=1), "10.0.0.3", 2)
    for task, address in ("chief-0", None), ("worker-0", ADDRESSES["worker-0"]):
        rendezvous.register(registration(task, incarnation=1, generation=1), address, 2)
    rendezvous.name_resolved("worker-1", "w", ["10.0.0.3"], 2)
    assert rendezvous.generation == 2


def test_false_claims_of_a_task_are_bounded_and_forgotten() -> None:
    rendezvous = in_a_round(ADDRESSES)
    for number in range(100):
        rendezvous.register(registration("worker-1", attempt=number), f"10.9.9.{number}", 1)
    assert len(rendezvous.addresses_to_check("worker-1", 1)) == MOST_CLAIMS
    assert rendezvous.addresses_to_check("worker-1", 2 + rendezvous.lease) == []


def test_the_end_is_known_only_once_the_groups_own_tasks_have_the_answer() -> None:
    rendezvous = in_a_round(ADDRESSES)
    rendezvous.finish()
    for task in ADDRESSES:
        rendezvous.register(registration(task, attempt=1), "10.9.9.9", 1)
    assert not rendezvous.all_know()


def test_a_new_process_at_the_same_address_is_not_looked_up_again() -> None:
    rendezvous = in_a_round(ADDRESSES)
    rendezvous.register(registration("worker-0", incarnation=1, generation=1), "10.0.0.1", 1)
    assert rendezvous.addresses_to_check("worker-0", 1) == []
    assert "worker-0" not in rendezvous.missing(1)


def test_a_parameter_server_chief_goes_when_all_others_serve() -> None:
    rendezvous = parameter_server()
    for task in ("worker-0", "ps-0"):
        assert rendezvous.register(registration(task, "serving"), None, 0).kind == "continue"
    chief = registration("chief-0")
    rendezvous.register(chief, None, 0)
    rendezvous.register(registration("ps-1", "running"), None, 0)
    for task in ("worker-0", "ps-0"):
        rendezvous.register(registration(task, "serving"), None, 0)
    assert rendezvous.answer(chief, 0).message == "waiting for ps-1 (not serving yet)"
    rendezvous.register(registration("ps-1", "serving"), None, 0)
    assert rendezvous.answer(chief, 0).kind == "go"


def test_a_parameter_server_chief_waits_for_the_new_ps_and_not_for_the_lost_ps() -> None:
    rendezvous = parameter_server()
    servers = [registration(task, "serving") for task in ("worker-0", "ps-0", "ps-1")]
    rendezvous.register(registration("chief-0"), None, 0)
    for each in servers:
        rendezvous.register(each, None, 0)
    before = rendezvous.revision
    again = registration("chief-0", incarnation=1, generation=1)
    assert rendezvous.register(again, None, 0.1).kind == "wait"
    assert rendezvous.revision > before, "servers must be asked to speak at once"
    for each in servers[:2]:
        rendezvous.register(each, None, 0.2)
    assert rendezvous.answer(again, 0.2).message == "waiting for ps-1"
    rendezvous.register(registration("ps-1", "serving", attempt=1), None, 3)
    for each in servers[:2]:
        rendezvous.register(each, None, 3)
    answer = rendezvous.answer(again, 3)
    assert (answer.kind, answer.changed, answer.message) == ("go", ("ps-1",), "ps-1 was lost")


def test_a_lost_worker_of_parameter_server_restarts_no_task() -> None:
    rendezvous = parameter_server()
    rendezvous.register(registration("chief-0"), None, 0)
    for task in ("worker-0", "ps-0", "ps-1"):
        rendezvous.register(registration(task, "serving"), None, 0)
    rendezvous.register(registration("worker-0", "preempted"), None, 1)
    rendezvous.register(registration("worker-0", "running", attempt=1), None, 1)
    answer = rendezvous.register(registration("chief-0", "running", generation=1), None, 1)
    assert (answer.kind, answer.preempted) == ("continue", ())
    rendezvous.register(crashed("chief-0"), None, 900)
    assert rendezvous.crashes.count == 1, "the worker's loss is no reason for it"


def test_names_are_counted_after_the_third() -> None:
    assert name_some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert name_some(["a", "b"]) == "a, b"


def test_tasks_that_the_group_waits_for_and_has_not_heard_are_named() -> None:
    rendezvous = mirrored()
    rendezvous.register(registration("chief-0"), None, 0)
    assert rendezvous.unheard(30, 0) == {"worker-0": "", "worker-1": ""}
    rendezvous.register(registration("worker-1"), None, 1)
    assert rendezvous.unheard(30, 10) == {"worker-0": ""}
    rendezvous.register(registration("chief-0"), None, 40)
    assert rendezvous.unheard(30, 40) == {"worker-0": "", "worker-1": ""}, "it was heard too long ago"


def test_a_task_that_reports_and_is_not_ready_is_heard() -> None:
    rendezvous = parameter_server()
    rendezvous.register(registration("ps-0", "running"), None, 0)
    assert rendezvous.unheard(30, 1) == {"worker-0": "", "ps-1": "", "chief-0": ""}


def test_a_task_whose_name_does_not_lead_to_it_cannot_be_reached() -> None:
    rendezvous = mirrored()
    for task, address in (("chief-0", None), ("worker-0", "10.0.0.2"), ("worker-1", None)):
        rendezvous.register(registration(task), address, 0)
    rendezvous.name_failed("worker-0", "its name does not resolve")
    assert rendezvous.unheard(30, 1) == {"worker-0": "its name does not resolve"}
