# SPDX-License-Identifier: Apache-2.0
"""Peers of a NetworkPolicy, as under `from`: whether an API server would take one as it is written.

Most selectors with a typing error match everything, and a refused NetworkPolicy keeps its job from starting.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Any

from dtjob.api.label_forms import check_name, check_value

_SELECTORS = ("namespaceSelector", "podSelector")
_EXAMPLE = '{"matchLabels": {"app": "prometheus"}}'
_EXPRESSION = '{"key": "app", "operator": "In", "values": ["prometheus"]}'
_WITH_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
"""The operators of an expression, and whether they take values."""
_RANGE = re.compile(r"[0-9A-Fa-f:.]+/[0-9]+")


def check(peer: object) -> None:
    """Raise ValueError, which names the field and says what to write, where this is no peer."""
    if not isinstance(peer, dict) or not peer:
        raise ValueError(f'{json.dumps(peer)} is no peer of a NetworkPolicy, such as {{"podSelector": {_EXAMPLE}}}')
    _refuse_others(peer, ("ipBlock", *_SELECTORS), "a peer", f'write {{"podSelector": {_EXAMPLE}}}, say')
    if not all(isinstance(value, dict) for value in peer.values()):
        raise ValueError(f"{json.dumps(peer)}: each field of a peer is an object")
    if "ipBlock" in peer:
        if len(peer) > 1:
            raise ValueError("ipBlock stands alone in its peer; write the selectors as another peer of the list")
        _check_block(peer["ipBlock"])
    for name in _SELECTORS:
        _check_selector(name, peer.get(name, {}))


def _refuse_others(found: Mapping[str, Any], known: tuple[str, ...], what: str, instead: str) -> None:
    others = sorted(set(found) - set(known))
    if others:
        raise ValueError(f"{others[0]} is no field of {what}; those are {', '.join(known)}: {instead}")


def _given(block: Mapping[str, Any], name: str, else_: Any) -> Any:
    """A field, where it is not left out; a null is as if it were."""
    value = block.get(name)
    return else_ if value is None else value


def _check_selector(name: str, selector: Mapping[str, Any]) -> None:
    _refuse_others(selector, ("matchLabels", "matchExpressions"), name, f'write {{"{name}": {_EXAMPLE}}}, say')
    labels, expressions = _given(selector, "matchLabels", {}), _given(selector, "matchExpressions", [])
    if not isinstance(labels, dict):
        raise ValueError(f"{name}.matchLabels is no object of labels; write {_EXAMPLE}, say")
    if not isinstance(expressions, list):
        raise ValueError(f"{name}.matchExpressions is no list; write [{_EXPRESSION}], say")
    try:
        for key, value in labels.items():
            check_name(key)
            check_value(key, value)
    except ValueError as error:
        raise ValueError(f"{name}.matchLabels: {error}") from None
    for index, expression in enumerate(expressions):
        _check_expression(f"{name}.matchExpressions[{index}]", expression)


def _check_expression(where: str, expression: object) -> None:
    if not isinstance(expression, dict) or not {"key", "operator"} <= set(expression):
        raise ValueError(f"{where} needs key and operator; write {_EXPRESSION}, say")
    _refuse_others(expression, ("key", "operator", "values"), where, f"write {_EXPRESSION}, say")
    key, operator, values = expression["key"], expression["operator"], _given(expression, "values", [])
    takes = _WITH_VALUES.get(operator) if isinstance(operator, str) else None
    if takes is None:
        raise ValueError(f"{where}.operator: {operator!r} is none; write one of {', '.join(_WITH_VALUES)}")
    if not isinstance(values, list) or bool(values) != takes:
        raise ValueError(f"{where}.values: {operator} needs {'a list of some' if takes else 'none; leave them out'}")
    try:
        check_name(key)
        for value in values:
            check_value(key, value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _check_block(block: Mapping[str, Any]) -> None:
    _refuse_others(block, ("cidr", "except"), "ipBlock", 'write {"ipBlock": {"cidr": "10.0.0.0/8"}}, say')
    whole, left_out = _range("ipBlock.cidr", block.get("cidr")), _given(block, "except", [])
    if not isinstance(left_out, list):
        raise ValueError('ipBlock.except is no list; write ["10.1.0.0/16"], say')
    for index, one in enumerate(left_out):
        part = _range(f"ipBlock.except[{index}]", one)
        inside = part.network_address in whole and part.prefixlen > whole.prefixlen
        if not inside:
            raise ValueError(f"ipBlock.except[{index}]: {one} is no part of {whole}; write a smaller range in that")


def _range(where: str, text: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        if isinstance(text, str) and _RANGE.fullmatch(text):
            return ipaddress.ip_network(text, strict=False)
    except ValueError:
        pass
    raise ValueError(f'{where}: {json.dumps(text)} is no range of addresses; write "10.0.0.0/8", say')
