# SPDX-License-Identifier: Apache-2.0
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dtjob.kube.deep_json import CUT_AT, cut, dumps, loads


@pytest.fixture(autouse=True)
def pythons_own_limit() -> Iterator[None]:
    """The operator raises it for its process."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(limit)


def nested(levels: int, inside: str = "1") -> str:
    return '{"a":' * levels + inside + "}" * levels


@pytest.mark.parametrize("value", [{"a": [1, "{", "\\", '"']}, [], "x", 1, {"[": {"]": []}}])
def test_json_that_python_can_parse_is_parsed_whole(value: Any) -> None:
    text = json.dumps(value)
    assert loads(text) == loads(text.encode()) == value
    assert cut(text) == text


@pytest.mark.parametrize("text", ['"\\ud800"', "1e999"], ids=["half a pair", "beyond a double"])
def test_json_that_orjson_refuses_is_parsed_all_the_same(text: str) -> None:
    assert loads(text) == loads(text.encode()) == json.loads(text)


@pytest.mark.parametrize("value", [{"a": ["ü", 1.5, None, True]}, "\ud800", 2**70, nested(3)])
def test_a_value_is_the_same_after_dumps_and_loads(value: Any) -> None:
    assert loads(dumps(value)) == json.loads(json.dumps(value))
    assert json.loads(dumps(value)) == value


def test_values_nested_too_deeply_are_cut_and_the_rest_is_kept() -> None:
    deep = f'{{"items": [{nested(10_000)}, {{"b": "]}}{{[", "c": [{nested(9000, "[]")}, 2]}}], "last": "{{"}}'
    found = loads(deep)
    assert found["last"] == "{"
    assert found["items"][1]["b"] == "]}{["
    assert found["items"][1]["c"][1] == 2
    value, levels = found["items"][0], 2
    while value is not None:
        value, levels = value["a"], levels + 1
    assert levels == CUT_AT


def test_a_text_that_is_no_json_is_an_error() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        loads("{")


@pytest.mark.parametrize("text", ['{"a": "' + '\\"' * 200_000, '"\\' * 200_000, '"\\\n' * 200_000])
def test_a_long_text_that_breaks_off_is_an_error_too(text: str) -> None:
    """A look for its strings that begins again at each quote would take hours."""
    with pytest.raises(ValueError, match="line 1"):
        loads(text)
