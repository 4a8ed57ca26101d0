# SPDX-License-Identifier: Apache-2.0
"""benchmarks.operators.testbed: objects are deleted in pages, which a busy API server answers in time."""

from typing import Any, cast

import pytest

from benchmarks.operators import testbed
from benchmarks.operators.jobs import NAMESPACE
from tools.cluster.rest import Api, path_of


class ManyObjects:
    """An API server with 450 objects of these kinds. It gives and deletes as many as a call allows."""

    def __init__(self, *resources: str) -> None:
        self._left = {path_of(one, NAMESPACE): 450 for one in resources}
        self.most = 0

    def call(self, method: str, path: str, body: Any = None, query: Any = None) -> dict[str, Any]:
        left = self._left.get(path, 0)
        page = min(left, int((query or {}).get("limit", left)))
        if method == "DELETE":
            self.most = max(self.most, page)
            self._left[path] = left - page
        return {"items": [{}] * page}

    @property
    def is_empty(self) -> bool:
        return not any(self._left.values())


@pytest.mark.parametrize("resources", [("dtjobs",), ("dtjobs", "pods", "services", "events")])
def test_no_call_deletes_more_than_a_page(resources: tuple[str, ...]) -> None:
    bed, api = testbed.Testbed({}), ManyObjects(*resources)
    bed.api = cast(Api, api)
    bed.clear() if "pods" in resources else bed.delete_jobs("dtjobs")
    assert api.is_empty
    assert api.most == 200
