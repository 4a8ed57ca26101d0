# SPDX-License-Identifier: Apache-2.0
"""Access modes of a claim that keep pods from mounting it."""

from typing import Any

import pytest

from dtjob.objects.pod.storage import mounting_problem
from tests.unit.operator import builders
from tests.unit.operator.builders import CLAIM_TEMPLATE


def problem(modes: list[str], mount: str, *, evaluator: bool = False, workers: int = 2, **job: Any) -> str:
    template = {"spec": {**CLAIM_TEMPLATE["spec"], "accessModes": modes}}
    storage = {"volumeClaimTemplate": template, "mountOn": mount}
    return mounting_problem(builders.job(evaluator=evaluator, workers=workers, checkpoint={"storage": storage}, **job))


@pytest.mark.parametrize(
    ("modes", "mount", "evaluator", "advice"),
    [
        (["ReadWriteOnce"], "Chief", True, ""),
        (["ReadWriteMany"], "All", True, ""),
        (["ReadWriteOnce", "ReadWriteMany"], "All", False, ""),
        (["ReadWriteOnce"], "All", False, "write ReadWriteMany, or mountOn: Chief"),
        (["ReadWriteOncePod"], "Chief", False, ""),
        (["ReadWriteOncePod"], "Chief", True, "several pods mount the volume: write ReadWriteOnce"),
        (["ReadWriteOncePod"], "All", False, "several pods mount the volume: write ReadWriteMany"),
    ],
)
def test_the_problem_says_which_mode_to_write(modes: list[str], mount: str, evaluator: bool, advice: str) -> None:
    found = problem(modes, mount, evaluator=evaluator)
    assert advice in found
    assert bool(found) == bool(advice)


def test_a_job_of_one_pod_and_a_job_without_a_template_have_no_problem() -> None:
    assert problem(["ReadWriteOnce"], "All", strategy="Mirrored") == ""
    assert mounting_problem(builders.job()) == ""
