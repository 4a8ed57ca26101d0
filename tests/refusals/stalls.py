# SPDX-License-Identifier: Apache-2.0
"""failurePolicy.stallTimeoutSeconds: what is no time of a stall, and jobs in which nobody could find one."""

from typing import Any

from tests.refusals.manifests import Bad, Manifest, bad, job, warned

FIELD = "spec.failurePolicy.stallTimeoutSeconds"


def _stall(seconds: Any, **spec: Any) -> Manifest:
    return job(failurePolicy={"stallTimeoutSeconds": seconds}, **spec)


def _on_stalls(**policy: Any) -> Manifest:
    return job(failurePolicy={"rules": [{"action": "FailJob", "onReasons": ["OOMKilled", "Stalled"]}], **policy})


STALLS: list[Bad] = [
    bad(
        "stall-as-text",
        _stall("10m"),
        FIELD,
        "must be of type integer",
        or_says=(f"{FIELD}: must be a whole number",),
    ),
    *(
        bad(
            f"stall-{seconds}",
            _stall(seconds),
            FIELD,
            "should be greater than or equal to 10",
            or_says=(f"{FIELD}: must be at least 10",),
        )
        for seconds in (-1, 0, 9)
    ),
    bad(
        "stall-of-a-month",
        _stall(30 * 86400),
        FIELD,
        "should be less than or equal to 604800",
        or_says=(f"{FIELD}: must be at most 604800",),
    ),
    warned(bad("stall-without-program", _stall(600, program=...), FIELD, "set program, or remove stallTimeoutSeconds")),
    *(
        warned(
            bad(
                f"stall-of-600-in-{active}",
                _stall(600, activeDeadlineSeconds=active),
                FIELD,
                "must be less than activeDeadlineSeconds",
            )
        )
        for active in (60, 600)
    ),
    bad(
        "stall-outside-failurePolicy",
        job(stallTimeoutSeconds=600),
        'unknown field "spec.stallTimeoutSeconds"',
        or_says=("spec.stallTimeoutSeconds: is an unknown field",),
    ),
    warned(
        bad(
            "rule-on-stalls-that-nobody-finds",
            _on_stalls(),
            "spec.failurePolicy.rules",
            "set it, such as 600, or remove Stalled from onReasons",
        )
    ),
]
STALLS_TAKEN: dict[str, Manifest] = {
    "stall": _stall(600),
    "stall-of-10-in-11": _stall(10, activeDeadlineSeconds=11),
    "rule-on-stalls": _on_stalls(stallTimeoutSeconds=604800),
}
