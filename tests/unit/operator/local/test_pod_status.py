# SPDX-License-Identifier: Apache-2.0
from dtjob.local import pod_status
from dtjob.plan.seen.children import PodState, facts_of, state_of
from tests.unit.operator.builders import NOW, at


def pod_with(status):
    return {"kind": "Pod", "metadata": {"name": "p"}, "status": status}


def test_the_plan_reads_it_as_a_kubelets():
    assert state_of(pod_with(pod_status.running(NOW)), NOW) is PodState.RUNNING
    assert state_of(pod_with(pod_status.ended(0, NOW, at(5), "")), NOW) is PodState.SUCCEEDED
    assert state_of(pod_with(pod_status.ended(1, NOW, at(5), "")), NOW) is PodState.FAILED


def test_a_signal_is_128_and_its_number():
    end = facts_of(pod_with(pod_status.ended(-9, NOW, at(5), "last words\n"))).end
    assert end is not None
    assert (end["exitCode"], end["signal"], end["reason"], end["message"]) == (137, 9, "Error", "last words")


def test_success_has_no_message():
    assert "message" not in pod_status.ended(0, NOW, NOW, "all is well")["containerStatuses"][0]["state"]["terminated"]


def test_the_message_keeps_to_the_kubelets_limits():
    many = "\n".join(f"line {number}" for number in range(500))
    assert len(pod_status.tail(many).splitlines()) == pod_status.MESSAGE_LINES
    wide = pod_status.tail("é" * 5000)
    assert len(wide.encode()) <= pod_status.MESSAGE_BYTES
    assert set(wide) == {"é"}
