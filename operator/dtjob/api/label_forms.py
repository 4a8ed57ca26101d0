# SPDX-License-Identifier: Apache-2.0
"""The forms of a label's name and value, as an API server checks them (IsQualifiedName and IsValidLabelValue)."""

import re

DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""As in a host name, of one part or more."""
NAME = rf"({DOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?"
"""The key of a label, with or without a domain (IsQualifiedName)."""
_NAME = re.compile(NAME)
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def check_name(name: object, of: str = "label") -> None:
    """Raise ValueError on what is no label's name, nor that of another thing whose names have this form."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name.rpartition("/")[0]) > 253:
        raise ValueError(f"{name!r} is no {of}'s name; write letters, digits, '-', '_', '.', such as example.com/team")


def check_value(name: object, value: object) -> None:
    """Raise ValueError on what no label can have as its value; `name` is the label's."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: {value!r} is no text, as a label's value is; write it in quotes")
    if not _VALUE.fullmatch(value):
        raise ValueError(f"{name}: {value!r} is no label's value; write at most 63 letters, digits, '-', '_' and '.'")
