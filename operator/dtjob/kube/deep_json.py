# SPDX-License-Identifier: Apache-2.0
"""JSON of the API server: tenants may nest it 10,000 levels deep. The deepest levels are left out.

orjson is three times as fast as the standard library. What it does not take, the standard library has to.
"""

import json
import re
from typing import Any

import orjson

CUT_AT = 200
"""Levels that are kept of a text that has more than orjson takes."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
"""A string, or a sign that opens or closes. If a text breaks off in a string, that string has no end. It is a token
too: else the search would begin again at each quote in it."""


def loads(text: str | bytes) -> Any:
    """Read JSON as json.loads does. If orjson refuses the text, null stands for what is nested deeper than CUT_AT."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # no JSON, deeper than 1,024 levels, or half a surrogate pair
        return json.loads(cut(text if isinstance(text, str) else text.decode()))


def dumps(value: Any) -> bytes:
    """As json.dumps, in UTF-8."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # an integer beyond 64 bits, or half a surrogate pair of a tenant's
        return json.dumps(value).encode()


def cut(text: str) -> str:
    """Well-formed JSON with null in place of every object and list nested deeper than CUT_AT."""
    kept, depth, kept_to = [], 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            depth += 1
            if depth == CUT_AT + 1:
                kept += [text[kept_to : token.start()], "null"]
        elif token[0] in "}]":
            if depth == CUT_AT + 1:
                kept_to = token.end()
            depth -= 1
    return "".join((*kept, text[kept_to:]))
