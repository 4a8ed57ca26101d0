# SPDX-License-Identifier: Apache-2.0
"""Random changes of manifests: what people, templates and editors make of them by mistake."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

from tests.refusals.manifests import Manifest

Place = tuple[Any, Any]
"""A mapping or a list, and a name or an index in it."""
Change = Callable[[Place, list[Place], Random], None]

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 1.5, 2**31, 2**40, "", "x", "a b", "é", "7", "16GB", "1Gi", "x" * 70, "$(A)"),
    *([], {}, [{}], [[]], ["x"], [None], {"a": "b"}, {"a": 1}, {"name": "x"}, [{"name": "x"}], {"a": None}),
)
MOST = 3
"""Changes of one manifest."""


def mutated(manifest: Manifest, random: Random) -> Manifest:
    """The manifest with a few changes of its spec."""
    changed = deepcopy(manifest)
    for _ in range(random.randint(1, MOST)):
        places = list(_places(changed["spec"]))
        if places:
            random.choice(CHANGES)(random.choice(places), places, random)
    return changed


def _places(value: Any) -> Iterator[Place]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _another_value(place: Place, _: list[Place], random: Random) -> None:
    place[0][place[1]] = deepcopy(random.choice(VALUES))


def _list_of_it(place: Place, _: list[Place], __: Random) -> None:
    place[0][place[1]] = [place[0][place[1]]]


def _mapping_of_it(place: Place, _: list[Place], random: Random) -> None:
    place[0][place[1]] = {random.choice(["a", "name", "value", "spec", place[1]]): place[0][place[1]]}


def _part_of_it(place: Place, _: list[Place], random: Random) -> None:
    value = place[0][place[1]]
    if isinstance(value, dict | list) and value:
        place[0][place[1]] = random.choice(list(value.values()) if isinstance(value, dict) else value)


def _nothing(place: Place, _: list[Place], __: Random) -> None:
    del place[0][place[1]]


def _misspelt(place: Place, _: list[Place], random: Random) -> None:
    block, name = place
    if isinstance(block, dict) and len(name) > 1:
        at = random.randrange(len(name) - 1)
        swapped = f"{name[:at]}{name[at + 1]}{name[at]}{name[at + 2 :]}"
        new = random.choice([name.lower(), swapped, f"{name[:at]}{name[at + 1 :]}", f"{name}s", name.capitalize()])
        block[new] = block.pop(name)


def _twice(place: Place, _: list[Place], __: Random) -> None:
    if isinstance(place[0], list):
        place[0].append(deepcopy(place[0][place[1]]))


def _what_stands_elsewhere(place: Place, places: list[Place], random: Random) -> None:
    block, key = random.choice(places)
    if key in (block if isinstance(block, dict) else range(len(block))):
        place[0][place[1]] = deepcopy(block[key])


def _what_stands_elsewhere_too(place: Place, places: list[Place], random: Random) -> None:
    block, key = random.choice(places)
    if isinstance(place[0], dict) and isinstance(block, dict) and key in block:
        place[0][key] = deepcopy(block[key])


def _another_text_or_number(place: Place, _: list[Place], random: Random) -> None:
    value = place[0][place[1]]
    if isinstance(value, str):
        place[0][place[1]] = random.choice([value.upper(), f"{value} ", f"-{value}", value[:-1], f"{value}/../x"])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        place[0][place[1]] = random.choice([value + 1, value - 1, -value, value * 1000, str(value), value + 0.5])


CHANGES: tuple[Change, ...] = (
    _another_value,
    _list_of_it,
    _mapping_of_it,
    _part_of_it,
    _nothing,
    _misspelt,
    _twice,
    _what_stands_elsewhere,
    _what_stands_elsewhere_too,
    _another_text_or_number,
)
