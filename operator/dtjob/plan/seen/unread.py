# SPDX-License-Identifier: Apache-2.0
"""What has to be read before a plan can be made: pods that no watch shows any more, and objects that nobody watches."""

from __future__ import annotations

from collections.abc import Iterable

Key = tuple[str, str]
"""Kind and name of an object."""


class Unread(Exception):
    """The plan depends on `pods` of the job, by name, or on other `objects`, by kind and name, that were not read.

    Who plans reads them, adds the answers to the children, and plans again.
    """

    def __init__(self, pods: Iterable[str] = (), objects: Iterable[Key] = ()) -> None:
        self.pods, self.objects = tuple(pods), tuple(objects)
        super().__init__(f"not read yet: {', '.join((*self.pods, *map('/'.join, self.objects)))}")
