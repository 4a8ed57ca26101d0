# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an object's metadata: its fields' types, and the forms of their values.

The definition says nothing of it: an API server checks it for every kind alike.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from dtjob.api.label_forms import DOMAIN, check_name, check_value
from dtjob.crd.answers.field_errors import Problem, open_block_errors
from dtjob.crd.answers.schemas import manifest_schema
from dtjob.crd.rule import Value

ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotations of an object, names and values."""
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DOMAIN = re.compile(DOMAIN)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")


def metadata_problems(metadata: Value) -> list[Problem]:
    """All that an API server would refuse in this metadata, whose empty fields are left out; none where there is none.

    The forms are looked at once all types are right.
    """
    if metadata is None:
        return []
    found = [*open_block_errors(metadata, manifest_schema()["properties"]["metadata"], "metadata")]
    return found or [Problem(f"metadata.{field}", said) for field, said in _wrong_forms(metadata)]


def _wrong_forms(metadata: Value) -> Iterator[tuple[str, str]]:
    """Each field that has not the form it must have, and what to write."""
    yield from _names(metadata.get("namespace"), metadata.get("generateName"))
    for name, value in (metadata.get("labels") or {}).items():
        yield from _said("labels", check_name, name)
        yield from _said("labels", check_value, name, value)
    yield from _annotations(metadata.get("annotations") or {})
    yield from _finalizers(metadata.get("finalizers") or [])
    owners = metadata.get("ownerReferences") or []
    for index, owner in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield f"ownerReferences[{index}].{field}", "is required; add it"
    controllers = sum(bool(owner.get("controller")) for owner in owners)
    if controllers > 1:
        yield "ownerReferences", f"{controllers} of them have controller: true; keep it in one"
    for field in ("creationTimestamp", "deletionTimestamp"):
        if (time := metadata.get(field)) is not None and not _is_time(time):
            yield field, f"{time!r} is no time; leave it out, or write one such as 2026-11-23T10:00:00Z"


def _names(namespace: str | None, begin: str | None) -> Iterator[tuple[str, str]]:
    if namespace and not _NAMESPACE.fullmatch(namespace):
        yield (
            "namespace",
            f"{namespace!r} is no namespace's name; write at most 63 lower-case letters, digits and dashes, "
            "such as team-1",
        )
    # A dash may end it, as more follows: an API server looks at it with that and the letter before as one letter.
    whole = f"{begin[:-2]}a" if begin and len(begin) > 1 and begin.endswith("-") else begin
    if whole and (not _DOMAIN.fullmatch(whole) or len(whole) > 253):
        yield "generateName", f"{begin!r} begins no name; write lower-case letters, digits and dashes, such as digits-"


def _annotations(annotations: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name in annotations:
        yield from _said("annotations", check_name, name.lower(), "annotation")
    size = sum(len(text.encode()) for entry in annotations.items() for text in entry)
    if size > ANNOTATIONS_LIMIT:
        yield "annotations", f"are {size} bytes; leave some out, as all together have at most {ANNOTATIONS_LIMIT}"


def _finalizers(finalizers: list[str]) -> Iterator[tuple[str, str]]:
    for name in finalizers:
        yield from _said("finalizers", check_name, name, "finalizer")
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield "finalizers", "orphan and foregroundDeletion: keep one of them"


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return _TIME.fullmatch(text) is not None


def _said(field: str, check: Callable[..., None], *looked_at: str) -> Iterator[tuple[str, str]]:
    """The field with what its check raises, where it does."""
    try:
        check(*looked_at)
    except ValueError as error:
        yield field, str(error)
