"""JSON of the API server, which lets tenants nest 10,000 levels deep: parsed all the same, without the deepest."""

from __future__ import annotations

import json
import re
from typing import Any

CUT_AT = 200
"""Levels that are kept where a text has more than Python's parser takes."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')


def loads(text: str | bytes) -> Any:
    """As json.loads; where that raises RecursionError, with null for what is nested deeper than CUT_AT."""
    try:
        return json.loads(text)
    except RecursionError:
        return json.loads(cut(text if isinstance(text, str) else text.decode()))


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
