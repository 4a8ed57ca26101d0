# SPDX-License-Identifier: Apache-2.0
"""Objects of the store that refuse to be read where nothing is kept: what is not there reads like what nobody set."""

from collections.abc import Mapping
from typing import Any

from dtjob.controller import stored_fields
from dtjob.objects.manifest import Manifest


class Guarded(dict[str, Any]):
    """Part of a kept object. Reading a field that is not kept is an AssertionError, be it there or not."""

    def __init__(self, found: Mapping[str, Any], fields: Mapping[str, Any], path: str) -> None:
        super().__init__({name: _guarded(value, fields[name], f"{path}.{name}") for name, value in found.items()})
        self._fields, self._path = fields, path

    def _check(self, name: object) -> None:
        assert name in self._fields, f"{self._path}.{name} is read, and controller/stored_fields.py does not keep it"

    def __getitem__(self, name: str) -> Any:
        self._check(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._check(name)
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._check(name)
        return super().get(name, default)


def guarded(manifest: Manifest) -> Manifest:
    """What is kept of the object, guarded where not all of it is."""
    found, fields = stored_fields.kept(manifest), stored_fields.FIELDS.get(manifest["kind"])
    return found if fields is None else Guarded(found, fields, manifest["kind"])


def _guarded(value: Any, how: Any, path: str) -> Any:
    if isinstance(how, stored_fields.Each):
        return value and [Guarded(one, how, path) for one in value]
    return Guarded(value, how, path) if isinstance(how, Mapping) and isinstance(value, Mapping) else value
