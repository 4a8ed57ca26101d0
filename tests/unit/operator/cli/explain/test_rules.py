# SPDX-License-Identifier: Apache-2.0
"""`dtjob explain` of the rules about failures."""

import json

from dtjob.cli.explain.rules import rules_that_hold
from tests.unit.operator import builders

RULES = """
  failurePolicy:
    maxRestartsWithoutProgress: 4
    rules:
      - {action: FailJob, onExitCodes: {operator: In, values: [1, 42]}, roles: [chief]}
      - {action: Restart, onExitCodes: {operator: NotIn, values: [3]}}
      - {action: FailJob, onSignals: [SIGSEGV, SIGBUS]}
      - {action: RestartAndIgnoreMaxRestarts, onPodConditions: [{type: DisruptionTarget, reason: Preempted}]}
      - {action: FailJob, onReasons: [OOMKilled]}
      - {action: LeaveFailed, roles: [evaluator]}
"""


def test_the_rules_are_in_their_order_with_the_built_in_rules_last(dtjob, good):
    good.write_text(good.read_text().rstrip() + RULES)
    _, out, _ = dtjob("explain", good, "-o", "json")
    rules = json.loads(out)["failureRules"]
    training = ["chief", "worker"]
    assert [(one["rule"], one["action"], one["roles"], one["matches"]) for one in rules[:6]] == [
        ("failurePolicy.rules[0]", "FailJob", ["chief"], "exit code 1, 42"),
        ("failurePolicy.rules[1]", "Restart", training, "exit code not 3"),
        ("failurePolicy.rules[2]", "FailJob", training, "signal SIGSEGV, SIGBUS"),
        (
            "failurePolicy.rules[3]",
            "RestartAndIgnoreMaxRestarts",
            training,
            "pod condition DisruptionTarget=True (Preempted)",
        ),
        ("failurePolicy.rules[4]", "FailJob", training, "reason OOMKilled"),
        ("failurePolicy.rules[5]", "LeaveFailed", ["evaluator"], "any failure"),
    ]
    assert [(one["rule"], one["action"], one["roles"]) for one in rules[6:]] == [
        ("built-in", "RestartAndIgnoreMaxRestarts", training),
        ("built-in", "Restart", training),
        ("built-in", "Restart", ["evaluator"]),
    ]
    assert rules[1]["does"] == "restart; at most 4 in a row without a newer checkpoint (maxRestartsWithoutProgress)"


def test_a_data_worker_is_replaced_alone():
    roles = {"worker": {"replicas": 2}, "data": {"replicas": 3}}
    rule = rules_that_hold(builders.job(replicaSpecs=roles))[-1]
    assert (rule.action, rule.roles, rule.matches) == ("Restart", ["data"], "any failure")
    assert rule.does == "replaced alone, and never counted; training goes on"


def test_the_text_names_the_signals_that_end_no_pod(dtjob, good):
    text = good.read_text().rstrip()
    _, out, _ = dtjob("explain", good)
    six = "SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV"
    assert f"chief, worker: a program that {six} ends after new steps starts again" in out
    good.write_text(f"{text}\n  failurePolicy: {{rules: [{{action: FailJob, onSignals: [SIGBUS], roles: [chief]}}]}}\n")
    _, out, _ = dtjob("explain", good)
    assert f"chief: a program that {six.replace('SIGBUS, ', '')} ends" in out
    assert f"worker: a program that {six} ends" in out
    good.write_text(f"{text}\n  failurePolicy: {{maxRestartsWithoutProgress: 0}}\n")
    _, out, _ = dtjob("explain", good)
    assert "starts again\n" not in out


def test_the_text_says_what_each_rule_does(dtjob, good):
    _, out, _ = dtjob("explain", good)
    assert "built-in               RestartAndIgnoreMaxRestarts chief, worker: evictions, preemptions, drains" in out
    assert "at most 100 in a row without a newer checkpoint or a long run (maxDisruptionsWithoutProgress)" in out
    assert "fails twice in the same way, or after all its training, ends the job (ProgramFailed)" in out
    good.write_text(good.read_text().rstrip() + RULES)
    _, out, _ = dtjob("explain", good)
    assert "1  failurePolicy.rules[0] FailJob          chief: exit code 1, 42" in out
    assert "the job fails at once" in out
    assert "evaluator: any failure" in out
