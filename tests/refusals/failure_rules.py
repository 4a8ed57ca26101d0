# SPDX-License-Identifier: Apache-2.0
"""Rules of the failure policy that say nothing, never match, or that a Job's podFailurePolicy refuses too."""

from typing import Any

from tests.refusals.manifests import CHECKPOINT, Bad, Manifest, bad, job, warned

WITH_EVALUATOR: Manifest = {"chief": {}, "worker": {"replicas": 2}, "evaluator": {}}


def ruled(*rules: Any, **spec: Any) -> Manifest:
    """A job with these rules."""
    return job(failurePolicy={"rules": list(rules)}, **spec)


def evaluated(*rules: Any) -> Manifest:
    """A job with an evaluator, with these rules."""
    return ruled(*rules, replicaSpecs=WITH_EVALUATOR, checkpoint=CHECKPOINT)


def codes(*values: Any, operator: Any = "In", **more: Any) -> Manifest:
    """A FailJob rule on exit codes."""
    found = {"operator": operator, "values": list(values)}
    return {"action": "FailJob", "onExitCodes": {name: one for name, one in found.items() if one is not ...}, **more}


def on(**more: Any) -> Manifest:
    """A FailJob rule."""
    return {"action": "FailJob", **more}


def _bad(name: str, rule: Any, field: str, *says: str, or_says: tuple[str, ...] = ()) -> Bad:
    """A job with this one rule. `field` is below it; `or_says` is said of the same field."""
    where = f"spec.failurePolicy.rules[0]{field}"
    return bad(f"rule-{name}", ruled(rule), where, *says, or_says=(where, *or_says) if or_says else ())


_OF_ONE = "write a rule for each"
ACTIONS = [
    _bad(
        "action-unknown", {**codes(1), "action": "Retry"}, ".action", '"Restart"', or_says=("must be one of Restart",)
    ),
    _bad("action-of-a-Job", {**codes(1), "action": "Count"}, ".action", '"Restart"', or_says=("must be one of",)),
    _bad("action-left-out", {"onReasons": ["Error"]}, ".action", "Required", or_says=("is required; add it",)),
    _bad("Ignore-without-roles", {**codes(1), "action": "LeaveFailed"}, ".action", "set roles to [evaluator]"),
    _bad("Ignore-for-a-worker", {"action": "LeaveFailed", "roles": ["worker"]}, ".action", "set roles to [evaluator]"),
    bad(
        "rule-Ignore-for-evaluator-and-worker",
        evaluated({"action": "LeaveFailed", "roles": ["evaluator", "worker"]}),
        "spec.failurePolicy.rules[0].action",
        "set roles to [evaluator], or another action",
    ),
    warned(
        bad(
            "rule-RestartAndIgnoreMaxRestarts-for-the-evaluator",
            evaluated({"action": "RestartAndIgnoreMaxRestarts", "roles": ["evaluator"]}),
            "spec.failurePolicy.rules[0].action",
            "write Restart, or remove evaluator",
        )
    ),
]

CRITERIA = [
    _bad("two-criteria", codes(1, onReasons=["Error"]), "", _OF_ONE),
    _bad("three-criteria", codes(1, onSignals=["SIGSEGV"], onPodConditions=[{"type": "A"}]), "", _OF_ONE),
    _bad("no-criterion", {"action": "FailJob"}, "", "the rule matches nothing", "or roles"),
    _bad("all-criteria-left-empty", on(onExitCodes=None, onReasons=None), "", "the rule matches nothing"),
    _bad(
        "unknown-criterion",
        on(onExitCode={"operator": "In", "values": [1]}),
        "",
        "onExitCode",
        or_says=("did you mean onExitCodes?",),
    ),
    bad(
        "rules-as-mapping",
        job(failurePolicy={"rules": "FailJob"}),
        "spec.failurePolicy.rules",
        "array",
        or_says=("spec.failurePolicy.rules", "must be a list"),
    ),
    bad(
        "rules-more-than-20",
        ruled(*(codes(number) for number in range(1, 22))),
        "spec.failurePolicy.rules",
        "at most 20 items",
        or_says=("spec.failurePolicy.rules", "must have at most 20 entries, and has 21"),
    ),
    warned(
        bad(
            "rule-twice",
            ruled(codes(1, 2), on(onReasons=["Error"]), codes(1, 2)),
            "spec.failurePolicy.rules",
            "remove it",
        )
    ),
    warned(
        bad(
            "rule-twice-but-for-a-default",
            ruled(*(on(onPodConditions=[{"type": "DisruptionTarget", **more}]) for more in ({}, {"status": "True"}))),
            "spec.failurePolicy.rules",
            "the second one never matches: remove it",
        )
    ),
]

EXIT_CODES = [
    _bad(
        "operator-unknown", codes(1, operator="Is"), ".onExitCodes.operator", '"NotIn"', or_says=("must be one of In",)
    ),
    _bad("operator-left-out", codes(1, operator=...), ".onExitCodes.operator", "Required", or_says=("is required",)),
    _bad(
        "values-left-out",
        on(onExitCodes={"operator": "In"}),
        ".onExitCodes.values",
        "Required",
        or_says=("is required",),
    ),
    _bad("values-empty", codes(), ".onExitCodes.values", "at least 1 items", or_says=("at least 1 entry; add one",)),
    _bad("values-twice", codes(1, 2, 1), ".onExitCodes.values[2]", "Duplicate value", or_says=("remove it",)),
    _bad(
        "values-more-than-255",
        codes(*range(256), operator="NotIn"),
        ".onExitCodes.values",
        "at most 255 items",
        or_says=("must have at most 255 entries",),
    ),
    _bad(
        "exit-code-256",
        codes(256),
        ".onExitCodes.values[0]",
        "less than or equal to 255",
        or_says=("must be at most 255",),
    ),
    _bad(
        "exit-code-below-0",
        codes(-1),
        ".onExitCodes.values[0]",
        "greater than or equal to 0",
        or_says=("must be at least 0",),
    ),
    _bad("exit-code-in-words", codes("one"), ".onExitCodes.values[0]", "integer", or_says=("must be a whole number",)),
    warned(_bad("exit-code-0-In", codes(0, 1), ".onExitCodes.values", "exit code 0 is success", "remove it")),
    warned(
        _bad(
            "exit-code-0-NotIn",
            codes(0, operator="NotIn"),
            ".onExitCodes.values",
            "exit code 0 is success",
            "remove it",
        )
    ),
    _bad(
        "container-of-a-Job",
        on(onExitCodes={"containerName": "tensorflow", "operator": "In", "values": [1]}),
        ".onExitCodes",
        "containerName",
        or_says=("is an unknown field; remove it",),
    ),
    warned(bad("rule-on-lost-peers", ruled(codes(75)), "spec.failurePolicy.rules", "write 76, or remove 75")),
]

SIGNALS_AND_REASONS = [
    _bad("signal-unknown", on(onSignals=["SEGV"]), ".onSignals[0]", '"SIGSEGV"', or_says=("must be one of",)),
    _bad("signal-number", on(onSignals=[11]), ".onSignals[0]", "string", or_says=("must be one of",)),
    _bad("signal-that-ends-nothing", on(onSignals=["SIGSTOP"]), ".onSignals[0]", '"SIGKILL"', or_says=("SIGKILL",)),
    _bad("signals-empty", on(onSignals=[]), ".onSignals", "at least 1 items", or_says=("at least 1 entry",)),
    _bad("signal-twice", on(onSignals=["SIGBUS", "SIGBUS"]), ".onSignals[1]", "Duplicate", or_says=("remove it",)),
    _bad("reasons-empty", on(onReasons=[]), ".onReasons", "at least 1 items", or_says=("at least 1 entry",)),
    _bad("reason-twice", on(onReasons=["Error", "Error"]), ".onReasons[1]", "Duplicate", or_says=("remove it",)),
    warned(_bad("reason-in-small-letters", on(onReasons=["oomkilled"]), ".onReasons", "with a capital first letter")),
    warned(_bad("reason-in-words", on(onReasons=["Out of memory"]), ".onReasons", "a reason is one word")),
    _bad("reason-empty", on(onReasons=[""]), ".onReasons[0]", "at least 1 chars", or_says=("must not be empty",)),
    warned(_bad("reason-of-pods-that-are-well", on(onReasons=["ContainerCreating"]), ".onReasons", "remove them")),
    warned(_bad("reason-of-success", on(onReasons=["Completed", "Error"]), ".onReasons", "Completed", "remove them")),
]

CONDITIONS_AND_ROLES = [
    _bad(
        "condition-without-type",
        on(onPodConditions=[{"status": "True"}]),
        ".onPodConditions[0].type",
        "Required",
        or_says=("is required",),
    ),
    _bad(
        "condition-status-unknown",
        on(onPodConditions=[{"type": "A", "status": "Maybe"}]),
        ".onPodConditions[0].status",
        '"False"',
        or_says=("must be one of",),
    ),
    _bad(
        "condition-status-without-quotes",
        on(onPodConditions=[{"type": "A", "status": True}]),
        ".onPodConditions[0].status",
        "string",
        or_says=("must be one of",),
    ),
    _bad(
        "conditions-empty",
        on(onPodConditions=[]),
        ".onPodConditions",
        "at least 1 items",
        or_says=("at least 1 entry",),
    ),
    _bad(
        "conditions-more-than-20",
        on(onPodConditions=[{"type": f"A{n}"} for n in range(21)]),
        ".onPodConditions",
        "at most 20 items",
        or_says=("must have at most 20 entries",),
    ),
    warned(
        _bad(
            "condition-of-pods-that-have-not-failed",
            on(onPodConditions=[{"type": "PodScheduled", "status": "False"}]),
            ".onPodConditions",
            "PodScheduled False never matches: remove it",
        )
    ),
    _bad("role-unknown", on(roles=["master"]), ".roles[0]", '"chief"', or_says=("must be one of chief",)),
    _bad("roles-empty", codes(1, roles=[]), ".roles", "at least 1 items", or_says=("at least 1 entry",)),
    _bad("role-twice", on(roles=["worker", "worker"]), ".roles[1]", "Duplicate", or_says=("remove it",)),
    *(
        warned(
            bad(
                f"rule-for-{role}-that-is-not-there",
                ruled(codes(1, roles=[role, other]), replicaSpecs={other: {}}),
                "spec.failurePolicy.rules",
                f"remove {role} from its roles",
            )
        )
        for role, other in (("chief", "worker"), ("worker", "chief"), ("ps", "worker"), ("evaluator", "chief"))
    ),
]

FAILURE_RULES = [*ACTIONS, *CRITERIA, *EXIT_CODES, *SIGNALS_AND_REASONS, *CONDITIONS_AND_ROLES]

MANY_RULES = [codes(*range(1, 255 - number), operator="NotIn") for number in range(20)]
"""The largest that there may be."""

FAILURE_RULES_TAKEN = {
    "rules": evaluated(
        codes(1, 2, 42, roles=["chief", "worker"]),
        codes(3, 1, operator="NotIn"),
        {"action": "RestartAndIgnoreMaxRestarts", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "Restart", "onSignals": ["SIGSEGV", "SIGABRT"]},
        on(onReasons=["OOMKilled", "ImagePullBackOff", "OutOfnvidia.com/gpu"]),
        on(
            onPodConditions=[
                {"type": "a.b/C", "status": "Unknown", "reason": "Why"},
                {"type": "Ready", "status": "False"},
            ]
        ),
        {"action": "LeaveFailed", "roles": ["evaluator"]},
        {"action": "Restart", "onReasons": ["Error"], "roles": ["evaluator", "chief"]},
        on(roles=["worker"]),
    ),
    "rules-none": ruled(),
    "rules-left-empty": job(failurePolicy={"rules": None}),
    "rules-most": ruled(*MANY_RULES),
    "rules-long": ruled(*(on(onReasons=[f"R{rule}{n}".ljust(128, "x") for n in range(64)]) for rule in range(20))),
    "rules-on-75-without-program": ruled(codes(75), program=...),
    "rules-on-all-but-75": ruled(codes(75, operator="NotIn")),
}
