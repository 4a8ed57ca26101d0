# SPDX-License-Identifier: Apache-2.0
"""What all tests of the operator share."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from dtjob.controller import store
from dtjob.plan.actions import Plan
from tests.unit.operator import documented
from tests.unit.operator.client.api_server import ApiServer, serving
from tests.unit.operator.simulation.guarded import guarded


@pytest.fixture(autouse=True, scope="session")
def _stores_that_refuse_to_be_read_where_nothing_is_kept() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "kept", guarded)
        yield


@pytest.fixture(autouse=True, scope="session")
def _plans_that_say_only_what_is_on_a_page() -> Iterator[None]:
    made = Plan.__init__

    def checked(plan: Plan, *arguments: Any, **fields: Any) -> None:
        made(plan, *arguments, **fields)
        documented.check_plan(plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "__init__", checked)
        yield


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A stand-in for an API server, which answers what the test tells it."""
    yield from serving()


@pytest.fixture
def tasks_end_unheard() -> Iterator[None]:
    """For a test that leaves tasks which asyncio complains of when they are freed: that is now, and not in the midst of
    another test. Inside `ast.parse`, Python 3.11 fails over the traceback that is then written (CPython's gh-106905).
    """
    yield
    gc.collect()
