# SPDX-License-Identifier: Apache-2.0
"""What is told of a plan that was carried out."""

from dtjob.controller.call_summary import CallSummary
from dtjob.plan.actions import Event


def test_all_created_pods_are_in_one_event_in_their_order():
    summary = CallSummary()
    summary.created("Service", "digits")
    for number in (10, 9, 0, 2):
        summary.created("Pod", f"digits-worker-{number}-0")
    summary.deleted("Pod", "digits-chief-0-0")
    assert summary.events() == [
        Event("Normal", "SuccessfulDelete", "Deleted pod: digits-chief-0-0"),
        Event(
            "Normal",
            "SuccessfulCreate",
            "Created 4 pods: digits-worker-0-0, digits-worker-2-0, digits-worker-9-0 and 1 more",
        ),
    ]


def test_refusals_of_several_pods_are_one_event_with_the_first_pods_message():
    summary = CallSummary()
    for number in (10, 9):
        summary.refused("Pod", f"digits-worker-{number}-0", f"no room for {number}")
    summary.refused("Service", "digits", "not ours")
    told = "Error creating 2 pods: digits-worker-9-0, digits-worker-10-0: no room for 9"
    assert summary.events() == [Event("Warning", "FailedCreate", told)]


def test_a_deleted_object_that_is_created_again_has_the_event_repaired():
    summary = CallSummary()
    summary.created("NetworkPolicy", "digits", again=True)
    summary.created("Service", "digits")
    told = "NetworkPolicy digits was missing and has been created again"
    assert summary.events() == [Event("Normal", "Repaired", told)]
