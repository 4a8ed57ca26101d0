# SPDX-License-Identifier: Apache-2.0
"""`--set PATH=VALUE`: sets fields of a manifest, with the type that the schema has for each. Pure."""

import json
import re
from collections.abc import Iterable
from typing import Any

from dtjob.bad_input import BadInput
from dtjob.crd.answers.field_errors import Problem, part_of
from dtjob.crd.answers.pod_problems import KUBERNETES_PARTS
from dtjob.crd.answers.schemas import manifest_schema, schema_of
from dtjob.crd.schema import INT_OR_STRING, QUANTITY, Schema

Key = str | int | tuple[str, str]
"""A field, the number of an entry in a list, or a field of an entry with its value."""
_SETTING = re.compile(r"(?P<path>(?:[^=\[]|\[[^\]]*\])+)=(?P<text>.*)", re.DOTALL)
_KEY = re.compile(r"(?:^|\.)((?:\\.|[^.\[\]\\])+)|\[(\d+)\]|\[(\w+)=([^\]]+)\]")
_EXAMPLE = "write for example spec.failurePolicy.maxRestarts=3"
_REMOVED = "null"
_OF_OTHER_OPTIONS = {
    "metadata.name": "give --name",
    "metadata.namespace": "give --namespace",
    "spec.program.source": "dtjob submit sends the script by itself, or a folder with --source",
}


def with_settings(manifest: dict[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The manifest with these fields, each given as PATH=VALUE. The value null removes a field. Raises BadInput."""
    for given in settings:
        found = _SETTING.fullmatch(given)
        if found is None:
            raise BadInput(f"--set: {given!r} is not PATH=VALUE; {_EXAMPLE}")
        path, text = found["path"], found["text"]
        for other, advice in _OF_OTHER_OPTIONS.items():
            if path == other or path.startswith(f"{other}."):
                raise BadInput(f"--set: {path}: {advice}")
        keys = _keys(path)
        try:
            manifest = _changed(manifest, keys, manifest_schema(), {}, text)
        except ValueError as error:
            raise BadInput(f"--set: {path}: {error}") from None
    return manifest


def said_of(problem: Problem, settings: Iterable[str], otherwise: str) -> str:
    """A problem of the manifest as a line that begins with --set if that has set the field, else with `otherwise`."""
    paths = [given.partition("=")[0] for given in settings]
    is_set = any(problem.field.startswith(path) or path.startswith(problem.field or "?") for path in paths)
    return f"{'--set' if is_set else otherwise}: {problem}"


def _keys(path: str) -> list[Key]:
    """The keys of a path such as spec.program.args[0] or containers[name=tensorflow].image. \\. is a dot of a name."""
    keys: list[Key] = []
    at = 0
    while at < len(path):
        found = _KEY.match(path, at)
        if found is None:
            raise BadInput(f"--set: {path!r} is no path; {_EXAMPLE}")
        field, index, key, value = found.groups()
        keys.append(re.sub(r"\\(.)", r"\1", field) if field else int(index) if index else (key, value))
        at = found.end()
    if keys[0] not in ("metadata", "spec"):
        raise BadInput(f"--set: {path}: a path begins with spec or metadata; did you mean spec.{path}?")
    return keys


def _changed(value: Any, keys: list[Key], schema: Schema, pod: Schema, text: str, above: str = "") -> Any:
    """The value in which the field at `keys` is set to the text. Raises ValueError.

    `pod`: Kubernetes' schema, which knows more of a pod's fields.
    """
    parts = {re.escape(at).replace(r"\*", r"\w+"): name for at, name in KUBERNETES_PARTS}
    pod = next((schema_of(name) for at, name in parts.items() if re.fullmatch(at, above)), pod)
    if not keys:
        return _typed(text, schema if {"type", "format", INT_OR_STRING} & schema.keys() else pod)
    key, rest = keys[0], keys[1:]
    inner = (part_of(schema, key if isinstance(key, str) else 0), part_of(pod, key if isinstance(key, str) else 0))
    if isinstance(key, str):
        if not isinstance(value, dict | None):
            raise ValueError(f"{above} has no fields")
        name = f"{above}.{key}" if above else key
        changed = _changed((value or {}).get(key), rest, *inner, text, name)
        kept = {field: one for field, one in (value or {}).items() if field != key or changed is not None}
        return kept if changed is None else {**kept, key: changed}
    if not isinstance(value, list | None):
        raise ValueError(f"{above} is no list")
    entries = list(value or [])
    index = key if isinstance(key, int) else _index(entries, *key)
    if index > len(entries):
        raise ValueError(f"{above} has {len(entries)} entries; the next is [{len(entries)}]")
    if index == len(entries):
        entries.append({key[0]: key[1]} if isinstance(key, tuple) else None)
    changed = _changed(entries[index], rest, *inner, text, f"{above}[]")
    return [*entries[:index], *([] if changed is None else [changed]), *entries[index + 1 :]]


def _index(entries: list[Any], field: str, wanted: str) -> int:
    """The entry whose field has this value, or the next one."""
    found = (at for at, one in enumerate(entries) if isinstance(one, dict) and one.get(field) == wanted)
    return next(found, len(entries))


def _typed(text: str, schema: Schema) -> Any:
    """The text as a value of the schema's type. A text that is none stays text, and is refused with the manifest."""
    if text == _REMOVED:
        return None
    if schema.get("type") == "string":
        return text
    if schema.get("type") == "integer" or INT_OR_STRING in schema or schema.get("format") == QUANTITY:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else text
    if schema.get("type") == "boolean":
        return {"true": True, "false": False}.get(text, text)
    import yaml

    try:
        return json.loads(json.dumps(yaml.safe_load(text), default=str))
    except yaml.YAMLError:
        raise ValueError(f"{text!r} is not YAML; write for example {{a: b}} or [a, b]") from None
