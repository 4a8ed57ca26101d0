# SPDX-License-Identifier: Apache-2.0
"""The rules as entries of x-kubernetes-validations: one entry for those that share a frame and a reason.

An API server takes 10 to 50 µs for each entry, and each look at a field of `spec` copies the schemas of all its fields.
So rules that look at the same part of a job share that look. If several of them are broken, the API server says one,
at the path that all of them share.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from dtjob.crd.rule import Reason, Rule


def entries(rules: Iterable[Rule]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All entries, each with the path of its rules."""
    groups: dict[object, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(_shared(rule), []).append(rule)
    for group in groups.values():
        yield group[0].at, _entry(group)


def _shared(rule: Rule) -> object:
    """What is the same for all rules of an entry. A rule without a frame has an entry of its own."""
    if rule.frame == "{}":
        return rule
    return rule.frame, rule.at, rule.reason, rule.is_for_creation


def _entry(rules: list[Rule]) -> dict[str, Any]:
    first = rules[0]
    cel = first.whole
    if len(rules) > 1:
        cel = first.frame.replace("{}", f"({' && '.join(f'({rule.cel})' for rule in rules)})")
    entry: dict[str, Any] = {"rule": cel, "message": _without_value(first)}
    if first.reason is not Reason.INVALID:  # that is an API server's default, and the definition has to stay small
        entry["reason"] = first.reason.value
    if first.is_for_creation:
        entry |= {"rule": f"oldSelf.hasValue() || ({cel})", "optionalOldSelf": True}
    if len(rules) > 1 or first.names:
        entry["messageExpression"] = _said(rules)
    field = _common(rule.field for rule in rules)
    if field.startswith("metadata"):  # which a fieldPath may not name
        entry["message"] = f"{field}: {first.message}"
    elif field:
        entry["fieldPath"] = f".{field}"
    return entry


def _common(fields: Iterable[str]) -> str:
    """The longest path that all these fields are below."""
    steps = zip(*(field.split(".") for field in fields), strict=False)
    return ".".join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, steps))


def _without_value(rule: Rule) -> str:
    return rule.message.replace("{}", "…") if rule.names else rule.message


def _said(rules: list[Rule]) -> str:
    """CEL: the message of the first rule that is broken."""
    *others, last = rules
    parts = [f"!({rule.whole}) ? {_message(rule)}" for rule in others]
    return " : ".join([*parts, _message(last)])


def _message(rule: Rule) -> str:
    """CEL: what the rule says of `self`."""
    if not rule.names:
        return _quoted(rule.message)
    before, after = rule.message.split("{}")
    return f"{_quoted(before)} + self.{rule.names} + {_quoted(after)}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
