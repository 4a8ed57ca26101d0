# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a manifest, as the command line says it."""

import sys
from collections.abc import Iterator

import pytest

from tests.unit.operator.cli.conftest import dtjob, good, without_image

__all__ = ["dtjob", "good", "without_image"]


@pytest.fixture(autouse=True)
def _usual_recursion_limit() -> Iterator[None]:
    """As in a process of the command line. The operator raises the limit, also in a test that ran before."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)
