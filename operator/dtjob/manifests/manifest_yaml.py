# SPDX-License-Identifier: Apache-2.0
"""YAML as kubectl reads it: what is a number, true, or text is as in go-yaml v2, which it has from sigs.k8s.io/yaml.

PyYAML goes by YAML 1.1 to the letter, where 1e-3 is text, 12:30 is 750, and a date is no text: with it `dtjob validate`
and `dtjob run` would see another manifest than the API server, and kubectl another than `dtjob explain` has written.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_WORDS = {
    "bool": (r"y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF", "yYtToOnNfF"),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "merge": (r"<<", ["<"]),
}
_NUMBERS = {
    "int": r"[-+]?(0[bB]_*[01][01_]*|0[oO]?_*[0-7][0-7_]*|0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|[1-9][0-9_]*|0)",
    "float": r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}
_HALF = re.compile(r"[\ud800-\udfff]")
_FEW = 1000
"""So many values may all come from aliases."""
_LEAST, _MOST = -(2**63), 2**64 - 1
"""Of whole numbers; what is beyond is a float."""
_WRITTEN_OUT = 1e21
"""From here on Go writes a float with an exponent."""


class _Loader(yaml.SafeLoader):
    """What is safe to load, by go-yaml's words and numbers."""

    # PyYAML shares these with the class above unless they are there
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012
    yaml_constructors = yaml.SafeLoader.yaml_constructors.copy()

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """The text of a value. JSON may write a character as two escapes; raises yaml.YAMLError for half of them."""
        text = super().construct_scalar(node)
        if not isinstance(text, str) or not _HALF.search(text):
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            problem = "an escape such as \\ud83d is half of a character; write both halves, or the character"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None


class _WithAliases(_Loader):
    """The same, for a text that may have aliases."""

    def compose_document(self) -> yaml.Node | None:
        """The nodes of a document. Raises yaml.YAMLError if its aliases stand for too much, as go-yaml does."""
        document = super().compose_document()
        if document is None:
            return None
        sizes: dict[int, int] = {}
        size = _size(document, sizes)
        by_aliases = size - len(sizes)
        if size > _FEW and by_aliases / size > _most_of(size):
            raise yaml.MarkedYAMLError(
                problem=f"its aliases stand for {by_aliases} values, which kubectl refuses; write fewer",
                problem_mark=document.start_mark,
            )
        return document


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many nodes there are below this one with each alias written out. `sizes` has those that are known."""
    if id(node) not in sizes:
        sizes[id(node)] = 1  # of a node that contains itself
        below = node.value if isinstance(node, yaml.CollectionNode) else ()
        children = (child for pair in below for child in (pair if isinstance(pair, tuple) else (pair,)))
        sizes[id(node)] = 1 + sum(_size(child, sizes) for child in children)
    return sizes[id(node)]


def _most_of(size: int) -> float:
    """The largest part of so many values that may come from aliases (go-yaml, allowedAliasRatio)."""
    return min(0.99, max(0.1, 0.99 - 0.89 * (size - 400_000) / 3_600_000))


class _Dumper(yaml.SafeDumper):
    """What is safe to write; text is in quotes where go-yaml would read something else, or a reader of YAML 1.1."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out, as people read it."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Lines of text as a block, which people can read."""
    return dumper.represent_scalar(f"{_TAG}str", text, style="|" if "\n" in text else None)


def _represent_list(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.SequenceNode:
    """Numbers, such as exit codes, beside each other: there may be a hundred."""
    return dumper.represent_sequence(f"{_TAG}seq", values, all(isinstance(each, int) for each in values) or None)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(list, _represent_list)


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode, form: str | re.Pattern[str], what: str) -> str:
    """The text of a value. Raises ValueError if it has another form, as text after a tag such as !!int may have."""
    text = str(loader.construct_scalar(node))
    if not re.fullmatch(form, text):
        raise ValueError(f"{text!r} is no {what}")
    return text


def _bool(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> bool:
    return _text(loader, node, _WORDS["bool"][0], "!!bool").lower() in ("y", "yes", "true", "on")


def _null(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> None:
    _text(loader, node, _WORDS["null"][0], "!!null")


def _date(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return _text(loader, node, yaml.SafeLoader.timestamp_regexp, "!!timestamp")


def _binary(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return base64.b64decode(str(loader.construct_scalar(node)), validate=True).decode(errors="replace")


def _int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | float:
    text = _text(loader, node, _NUMBERS["int"], "!!int").replace("_", "").lower()
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdecimal()
    number = sign * int(digits, 8 if octal else 0)
    return number if _LEAST <= number <= _MOST else float(number)


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | float:
    text = _text(loader, node, f"{_NUMBERS['float']}|{_NUMBERS['int']}", "!!float").replace("_", "").lower()
    number = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    # on its way to the API server it is JSON, where 1e3 is written 1000
    return int(number) if number.is_integer() and abs(number) < _WRITTEN_OUT else number


for _name, (_form, _starts) in (_WORDS | {name: (form, "-+.0123456789") for name, form in _NUMBERS.items()}).items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"(?:{_form})\Z"), list(_starts))
_OF_A_TAG = {"bool": _bool, "null": _null, "int": _int, "float": _float, "timestamp": _date, "binary": _binary}
for _name, _construct in _OF_A_TAG.items():
    _Loader.add_constructor(f"{_TAG}{_name}", _construct)


def documents(text: str) -> Iterator[Any]:
    """What is in each document of a file. Raises yaml.YAMLError on what is no YAML, and ValueError on what is not
    what its tag says."""
    yield from yaml.load_all(text, _WithAliases if "*" in text else _Loader)


def written(documents: Iterable[Any]) -> str:
    """These documents as YAML that kubectl reads as what they are."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120)


def printed(documents: Sequence[Any], *, as_json: bool) -> str:
    """These documents as YAML or JSON, which kubectl reads too. In JSON, several are a List."""
    if not as_json:
        return written(documents)
    whole = documents[0] if len(documents) == 1 else {"apiVersion": "v1", "kind": "List", "items": documents}
    return json.dumps(whole, indent=2) + "\n"
