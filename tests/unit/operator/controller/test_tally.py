"""What is told of a plan that was carried out."""

from __future__ import annotations

from dtjob.controller.tally import Tally
from dtjob.plan.actions import Event


def test_one_event_for_all_pods_in_their_order():
    tally = Tally()
    tally.created("Service", "digits")
    for number in (10, 9, 0, 2):
        tally.created("Pod", f"digits-worker-{number}-0")
    tally.deleted("Pod", "digits-chief-0-0")
    assert tally.events() == [
        Event("Normal", "SuccessfulDelete", "Deleted pod: digits-chief-0-0"),
        Event(
            "Normal",
            "SuccessfulCreate",
            "Created 4 pods: digits-worker-0-0, digits-worker-2-0, digits-worker-9-0 and 1 more",
        ),
    ]


def test_a_refusal_is_told_once_with_one_pods_words():
    tally = Tally()
    for number in (10, 9):
        tally.refused("Pod", f"digits-worker-{number}-0", f"no room for {number}")
    tally.refused("Service", "digits", "not ours")
    told = "Error creating 2 pods: digits-worker-9-0, digits-worker-10-0: no room for 9"
    assert tally.events() == [Event("Warning", "FailedCreate", told)]


def test_what_somebody_has_deleted_is_told_of_when_it_is_there_again():
    tally = Tally()
    tally.created("NetworkPolicy", "digits", again=True)
    tally.created("Service", "digits")
    told = "NetworkPolicy digits was missing and has been created again"
    assert tally.events() == [Event("Normal", "Mended", told)]


def test_nothing_done_is_nothing_said():
    assert Tally().events() == []
