# SPDX-License-Identifier: Apache-2.0
"""Whose end may end the job: both halves of each rule say the same of a manifest."""

from __future__ import annotations

import pytest

from dtjob.crd.answers.problems import problems
from tests.refusals import job


@pytest.mark.parametrize(
    ("mount", "refused"), [(None, True), ("Chief", True), ("All", False)], ids=["default", "Chief", "All"]
)
def test_all_workers_do_not_go_with_an_evaluator_on_the_chiefs_node(mount: str | None, refused: bool):
    volume = {"volume": {"nfs": {"server": "a", "path": "/"}}}
    checkpoint = {"storage": volume | ({"mountOn": mount} if mount else {})}
    roles = {"chief": {}, "worker": {}, "evaluator": {}}
    found = problems(job(replicaSpecs=roles, successPolicy="AllWorkers", checkpoint=checkpoint))
    assert [one.field for one in found] == ["spec.successPolicy"] * refused
