# SPDX-License-Identifier: Apache-2.0
"""Readers: who beyond a job's own pods may read its tasks' /status and /metrics, by its NetworkPolicy.

The peers that an administrator names are checked as an API server would. Most selectors with a typing error match
everything, and a refused NetworkPolicy keeps its job from starting.
"""

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dtjob.api.label_forms import check_name, check_value

OPERATOR_LABELS = {"app.kubernetes.io/name": "dtjob"}
"""On the operator's pods; the chart sets it last, so that no value of its takes it away."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""On every namespace, set by the API server: its name, which nobody else's namespace can have."""


@dataclass(frozen=True)
class Readers:
    """`operator_namespace` None: the operator runs outside the cluster, and no policy can name it. `scrapers` are peers
    of a NetworkPolicy, as under `from`; none: nobody scrapes."""

    operator_namespace: str | None = None
    scrapers: tuple[Mapping[str, Any], ...] = ()

    def peers(self) -> list[dict[str, Any]]:
        """All of them, as under `from` of a NetworkPolicy; empty if there are none."""
        peers = [dict(scraper) for scraper in self.scrapers]
        if self.operator_namespace is None:
            return peers
        # Both in one peer: such a pod in that namespace, and not such a pod anywhere.
        operator = {
            "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: self.operator_namespace}},
            "podSelector": {"matchLabels": dict(OPERATOR_LABELS)},
        }
        return [operator, *peers]


NO_READERS = Readers()


def parse_scrapers(text: str) -> tuple[Mapping[str, Any], ...]:
    """A JSON list of a NetworkPolicy's peers. Raises ValueError that says what is wrong."""
    try:
        peers = json.loads(text)
    except (ValueError, RecursionError):
        peers = None
    if not isinstance(peers, list):
        raise ValueError(f"{text!r} is no JSON list")
    for peer in peers:
        _check_peer(peer)
    return tuple(peers)


_SELECTORS = ("namespaceSelector", "podSelector")
_EXAMPLE = '{"matchLabels": {"app": "prometheus"}}'
_EXPRESSION = '{"key": "app", "operator": "In", "values": ["prometheus"]}'
_WITH_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
"""The operators of an expression, and whether they take values."""
_RANGE = re.compile(r"[0-9A-Fa-f:.]+/[0-9]+")


def _check_peer(peer: object) -> None:
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
