# SPDX-License-Identifier: Apache-2.0
"""Words of other APIs, whose users write dtjobs: one manifest for each word."""

import re
from typing import Any

from dtjob.crd.answers import hints
from tests.refusals.failure_rules import codes, on, ruled
from tests.refusals.manifests import CHECKPOINT, Bad, Manifest, bad, job


def _unknown(path: str) -> str:
    """The field that an API server does not know: of an unknown block, the block itself."""
    return "spec.runPolicy" if path.startswith("spec.runPolicy.") else path


def _job_with(path: str) -> tuple[Manifest, str]:
    """A job with the field at this path, and the path with a role in place of `*`."""
    path = path.replace(".*", ".worker")
    if "rules[]" in path:
        word = path.rpartition(".")[2]
        rule = {**codes(1), "onExitCodes": {**codes(1)["onExitCodes"], word: "main"}}
        if "onExitCodes" not in path:
            rule = on(roles=["worker"], **{word: ["workers"]})
        return ruled(rule), path.replace("[]", "[0]")
    value: Any = {}
    made = job(checkpoint=CHECKPOINT, replicaSpecs={"chief": {}, "worker": {}})
    steps = path.split(".")
    block = made
    for step in steps[:-1]:
        block = block.setdefault(step, {})
    block[steps[-1]] = value
    return made, path


def _bad(word: str) -> Bad:
    """`kubectl apply` says that there is no such field, `dtjob validate` what to write for it."""
    made, path = _job_with(word)
    advice = hints.instead(path)
    assert advice is not None
    said = (f"{path}: is an unknown field; {advice}",)
    return bad(f"other-words-{path.removeprefix('spec.')}", made, f'unknown field "{_unknown(path)}"', or_says=said)


def _bad_value(path: str, value: str) -> Bad:
    made = ruled({**codes(1), "action": value})
    said = hints.of_value(path, value)
    assert said is not None
    field = re.sub(r"\[\]", "[0]", path)
    return bad(f"other-value-{value}", made, field, "Unsupported value", or_says=(f"{field}: must be one of", said))


OTHER_WORDS = [
    *(_bad(word) for word in hints._ADVICE),
    *(_bad_value(*known) for known in hints._VALUES),
]
