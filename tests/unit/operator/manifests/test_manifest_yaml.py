# SPDX-License-Identifier: Apache-2.0
"""YAML as kubectl reads it: the values are go-yaml's (tests/cluster/test_manifest_yaml.py asks kubectl itself)."""

import json
import math
from typing import Any

import pytest
import yaml

from dtjob.manifests.manifest_yaml import documents, written

VALUES: dict[str, Any] = {
    "1e-3": 0.001,
    "1E5": 100000,
    "1e3": 1000,
    "2.0": 2,
    "1.5e3": 1500,
    "2.5": 2.5,
    "-.5": -0.5,
    "5.": 5,
    "1_000": 1000,
    "0x1F": 31,
    "0b11": 3,
    "0o17": 15,
    "017": 15,
    "-017": -15,
    "08": 8,
    "0x_": "0x_",
    "._": "._",
    "0b": "0b",
    "+5": 5,
    "12:30": "12:30",
    "12:30:00": "12:30:00",
    "190:20:30.15": "190:20:30.15",
    "2026-11-23": "2026-11-23",
    "2026-13-45": "2026-13-45",
    "2026-11-23T10:00:00Z": "2026-11-23T10:00:00Z",
    "y": True,
    "yes": True,
    "On": True,
    "n": False,
    "off": False,
    "yEs": "yEs",
    "yellow": "yellow",
    "~": None,
    "null": None,
    "": None,
    "NULL": None,
    "=": "=",
    ".": ".",
    "1.2.3": "1.2.3",
    "1e": "1e",
    "0x": "0x",
    "16Gi": "16Gi",
    "'12'": "12",
}


TAGGED: dict[str, Any] = {
    "!!int '7'": 7,
    "!!float 1": 1,
    "!!bool 'yes'": True,
    "!!null ''": None,
    "!!str 7": "7",
    "!!timestamp 2026-11-23": "2026-11-23",
    "!!binary eHg=": "xx",
}


@pytest.mark.parametrize(("text", "value"), (VALUES | TAGGED).items(), ids=VALUES | TAGGED)
def test_a_value_is_what_kubectl_takes_it_for(text: str, value: Any) -> None:
    (found,) = documents(f"a: {text}")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize("tag", ["int", "float", "bool", "timestamp", "binary"])
@pytest.mark.parametrize("text", ["'?'", "x", "'_'", "'+'", "[a]", "{a: b}"])
def test_a_value_that_is_not_what_its_tag_says_is_an_error(tag: str, text: str) -> None:
    with pytest.raises((yaml.YAMLError, ValueError)):
        list(documents(f"a: !!{tag} {text}"))


@pytest.mark.parametrize("tag", ["int", "float", "bool", "timestamp"])
def test_nothing_is_no_number_and_no_date(tag: str) -> None:
    with pytest.raises(ValueError, match="'' is no"):
        list(documents(f"a: !!{tag} ''"))


def test_a_tag_of_nothing_before_something_is_an_error() -> None:
    with pytest.raises(ValueError, match="'x' is no !!null"):
        list(documents("a: !!null x"))


def test_two_escapes_of_json_are_one_character_and_half_of_them_is_an_error() -> None:
    assert list(documents(json.dumps({"\U0001f600": "\U0001f600"}))) == [{"\U0001f600": "\U0001f600"}]
    for text in (r'a: "\ud83d"', r'"\ude00": 1'):
        with pytest.raises(yaml.MarkedYAMLError, match="half of a character"):
            list(documents(text))


def test_infinite_numbers_and_nan_are_read() -> None:
    (found,) = documents("[.inf, -.Inf, .NaN]")
    assert found[:2] == [math.inf, -math.inf]
    assert math.isnan(found[2])


def test_a_number_that_no_integer_holds_is_a_float() -> None:
    (found,) = documents("[9223372036854775807, 18446744073709551616]")
    assert list(map(type, found)) == [int, float]


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, levels)]
    return "\n".join(lines)


def test_aliases_that_stand_for_too_much_are_refused_as_go_yaml_does() -> None:
    for levels in (5, 6, 12):
        with pytest.raises(yaml.YAMLError, match="its aliases stand for"):
            list(documents(bomb(levels)))
    assert [len(one) for one in documents(bomb(3))] == [3]
    shared = "base: &b {a: 1, b: 2, c: 3}\n" + "\n".join(f"k{at}: {{<<: *b, d: {at}}}" for at in range(1000))
    assert [len(one) for one in documents(shared)] == [1001]


def test_anchors_merges_and_several_documents_are_read() -> None:
    text = "a: &a {b: 1}\nc:\n  <<: *a\n  d: 2\n---\nsecond"
    assert list(documents(text)) == [{"a": {"b": 1}, "c": {"b": 1, "d": 2}}, "second"]


@pytest.mark.parametrize("text", VALUES)
def test_text_is_written_so_that_every_reader_takes_it_for_text(text: str) -> None:
    made = [{"value": text, text: "as a name"}]
    assert list(documents(written(made))) == made
    assert list(yaml.safe_load_all(written(made))) == made


def test_numbers_and_booleans_are_written_without_quotes() -> None:
    made = {"numbers": [1, -15, 0.001, 1e-07, 1e30, 2**63], "others": [True, False, None], "none": {}}
    assert list(documents(written([made, "second"]))) == [made, "second"]
    assert '"' not in written([made])
    assert "!!" not in written([made])


def test_a_list_of_numbers_is_written_in_one_line():
    assert written([{"values": [1, 2, 3], "args": ["a", "b"]}]) == "values: [1, 2, 3]\nargs:\n- a\n- b\n"
