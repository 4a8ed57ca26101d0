# SPDX-License-Identifier: Apache-2.0
"""The table of jobs."""

from dtjob.cli.watching.listing import table
from tests.unit.operator.cli.watching.jobs import NOW, RUNNING, job


def test_columns_are_aligned_and_end_without_spaces() -> None:
    assert list(table([job(**RUNNING), job()], with_namespace=True, now=NOW)) == [
        "NAMESPACE   NAME     PHASE     READY   STEP      ETA   RESTARTS   REASON            AGE",
        "team        digits   Running   3/3     251/690   46s   2          AllTasksRunning   2h",
        "team        digits   Pending                           0                            2h",
    ]


def test_the_namespace_is_a_column_only_where_there_are_several() -> None:
    assert next(iter(table([], with_namespace=False, now=NOW))).startswith("NAME ")
