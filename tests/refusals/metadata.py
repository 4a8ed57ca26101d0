# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes itself wants of an object's metadata, whatever the object is."""

from typing import Any

from tests.refusals.manifests import Bad, Manifest, bad, job

_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}


def with_metadata(**fields: Any) -> Manifest:
    """A good job with these fields of its metadata."""
    manifest = job()
    return {**manifest, "metadata": {**manifest["metadata"], **fields}}


def _unknown(name: str, or_says: str, **fields: Any) -> Bad:
    where = f"metadata.{name}"
    return bad(f"unknown-{name}", with_metadata(**fields), f'unknown field "{where}"', or_says=(f"{where}: {or_says}",))


def _form(name: str, field: str, says: str, value: Any, or_says: str) -> Bad:
    where = f"metadata.{field}"
    return bad(name, with_metadata(**{field: value}), f"{where}: {says}", or_says=(f"{where}: {or_says}",))


def _unreadable(name: str, field: str, of: str, value: Any, or_says: str) -> Bad:
    return bad(name, with_metadata(**{field: value}), f"{field} of type {of}", or_says=(f"metadata.{or_says}",))


_INVALID = "Invalid value"
_NO_LABEL_NAME = "is no label's name; write letters, digits"
METADATA = [
    _unknown("lables", "is an unknown field; did you mean labels?", lables={"team": "a"}),
    _unknown("clusterName", "is an unknown field", clusterName="a"),
    _unknown("ownerReferences[0].owner", "is an unknown field", ownerReferences=[{**_OWNER, "owner": "a"}]),
    *(
        _form(f"label-value-{what}", "labels", _INVALID, {"team": value}, f"team: '{shown}' is no label's value; write")
        for what, value, shown in (
            ("with-a-space", "x y", "x y"),
            ("too-long", "a" * 64, "a" * 64),
            ("that-ends-with-a-line", "a\n", "a\\n"),
        )
    ),
    *(
        _form(f"label-name-{what}", "labels", _INVALID, {name: "a"}, f"{name!r} {_NO_LABEL_NAME}")
        for what, name in (
            ("with-a-space", "a b"),
            ("empty", ""),
            ("without-its-prefix", "/a"),
            ("with-a-prefix-in-capitals", "Example.com/a"),
            ("with-two-dots-in-its-prefix", "example..com/a"),
            ("with-a-dash-after-a-dot", "example.-com/a"),
            ("with-a-long-prefix", f"{'a' * 254}/a"),
        )
    ),
    _form("annotation-name", "annotations", _INVALID, {"a b": "x"}, "'a b' is no annotation's name; write letters"),
    _form("annotations-too-large", "annotations", "Too long", {"a": "x" * 256 * 1024}, "are 262145 bytes; leave"),
    _form("finalizer-with-a-space", "finalizers", _INVALID, ["a b/c"], "'a b/c' is no finalizer's name; write"),
    _form("finalizer-in-capitals", "finalizers", _INVALID, ["A/c"], "'A/c' is no finalizer's name; write"),
    _form("two-ends", "finalizers", _INVALID, ["orphan", "foregroundDeletion"], "orphan and foregroundDeletion: keep"),
    _form("generated-name", "generateName", _INVALID, "A_", "'A_' begins no name; write lower-case letters, digits"),
    bad(
        "owner-without-uid",
        with_metadata(ownerReferences=[{**_OWNER, "uid": None}]),
        # 1.36: "ownerReferences.uid: Invalid value"; 1.37: "ownerReferences[0].uid: Required value"
        *("metadata.ownerReferences", ".uid: "),
        or_says=("metadata.ownerReferences[0].uid: is required; add it",),
    ),
    _form(
        "two-controllers",
        "ownerReferences",
        _INVALID,
        [{**_OWNER, "controller": True}, {**_OWNER, "name": "b", "controller": True}],
        "2 of them have controller: true; keep it in one",
    ),
]

UNREADABLE = [
    _unreadable("label-as-number-of-the-job", "labels", "string", {"team": 5}, "labels.team: must be text, not 5: put"),
    _unreadable("label-as-bool", "labels", "string", {"team": True}, "labels.team: must be text, not true: put"),
    _unreadable("labels-as-text", "labels", "map[string]string", "x", "labels: must be a mapping"),
    _unreadable("labels-as-list", "labels", "map[string]string", ["team"], "labels: must be a mapping"),
    _unreadable("annotation-as-number", "annotations", "string", {"a": 5}, "annotations.a: must be text, not 5: put"),
    _unreadable("annotations-as-text", "annotations", "map[string]string", "x", "annotations: must be a mapping"),
    _unreadable("namespace-as-number", "namespace", "string", 5, "namespace: must be text, not 5"),
    _unreadable("finalizers-as-text", "finalizers", "[]string", "x", "finalizers: must be a list, not 'x'"),
    _unreadable("generation-as-text", "generation", "int64", "5", "generation: must be a whole number, not '5'"),
    _unreadable(
        "owners-as-text", "ownerReferences", "[]v1.OwnerReference", "x", "ownerReferences: must be a list, not 'x'"
    ),
    _unreadable("link-as-number", "selfLink", "string", 1, "selfLink: must be text, not 1"),
    bad(
        "time-of-creation",
        with_metadata(creationTimestamp="yesterday"),
        'parsing time "yesterday"',
        or_says=("metadata.creationTimestamp: 'yesterday' is no time; leave it out",),
    ),
]
"""What cannot be decoded at all: kubectl reads no manifest of a file after one of these."""

METADATA_TAKEN = {
    "all-metadata": with_metadata(
        generateName="a--",
        labels={"team": "", "example.com/a": "A_b.c-1", f"{'a' * 253}/a": "1"},
        annotations={"Example.com/A": "any text\n" * 90, "largest": "a" * 200_000},
        finalizers=["x", "example.com/a", "orphan"],
        ownerReferences=[{**_OWNER, "controller": True}],
        selfLink="a",
        uid="a",
        generation=5,
        creationTimestamp="2026-11-23T10:00:00.5+01:00",
        deletionTimestamp="2026-11-23T10:00:00Z",
        deletionGracePeriodSeconds=5,
    ),
    "metadata-left-empty": with_metadata(
        namespace=None,
        labels={"team": None},
        annotations={"a": None},
        finalizers=None,
        ownerReferences=[{**_OWNER, "blockOwnerDeletion": None}],
        creationTimestamp=None,
        uid=None,
    ),
    "labels-left-empty": with_metadata(labels=None, annotations=None, ownerReferences=None),
}
