# SPDX-License-Identifier: Apache-2.0
"""The unit tier takes seconds, so that it is run after every change of a line, and says the same each time."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from tests.power_loss.disk import Kind
from tests.power_loss.mounted import MountedDisk, NotMountedError

# Looking for garbage takes a tenth of this tier, which makes little that a reference count would not free.
gc.set_threshold(100_000, 50, 50)

# A busy machine is no reason to fail, nor is a history that nobody has met before.
settings.register_profile(
    "unit",
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
settings.load_profile("unit")

# Hypothesis draws constants that it finds in whatever of ours is imported by then: which tests ran before must not say
# which examples the next one sees.
providers._get_local_constants = Constants


@pytest.fixture(autouse=True)
def recursion_limit() -> Iterator[None]:
    """The operator raises the limit for its process. A test that begins one must not change what later tests see."""
    limit = sys.getrecursionlimit()
    yield
    if sys.getrecursionlimit() != limit:
        sys.setrecursionlimit(limit)


@pytest.fixture(params=list(Kind))
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MountedDisk]:
    """A file system of each kind, whose power can be cut after any change."""
    try:
        with MountedDisk(tmp_path / "disk", request.param) as mounted:
            yield mounted
    except NotMountedError:
        pytest.skip("no file system can be mounted here: that needs Linux, root and /dev/fuse")
