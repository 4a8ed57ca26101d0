# SPDX-License-Identifier: Apache-2.0
import json
from typing import Any

import pytest

from dtjob.objects.readers import parse_scrapers


@pytest.mark.parametrize(
    "text", ["[]", '[{"podSelector": {}}]', '[{"ipBlock": {"cidr": "10.0.0.0/8"}}, {"namespaceSelector": {}}]']
)
def test_peers_are_read(text: str) -> None:
    assert len(parse_scrapers(text)) == text.count("Selector") + text.count("ipBlock")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prometheus", "is no JSON list"),
        ("{}", "is no JSON list"),
        ("[" * 100_000, "is no JSON list"),
        ("[{}]", "is no peer"),
        ("[1]", "is no peer"),
        ('[{"labels": {}}]', "labels is no field of a peer"),
        ('[{"podSelector": "prometheus"}]', "each field of a peer is an object"),
    ],
)
def test_a_scraper_that_is_no_peer_is_refused_and_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_scrapers(text)


def expressions(*found: Any) -> dict[str, Any]:
    return {"podSelector": {"matchExpressions": list(found)}}


@pytest.mark.parametrize(
    "peer",
    [
        {"podSelector": {"matchLabels": {"app": "prometheus", "example.com/team": ""}}, "namespaceSelector": {}},
        expressions({"key": "app", "operator": "NotIn", "values": ["a", "b"]}, {"key": "b", "operator": "Exists"}),
        {"ipBlock": {"cidr": "10.0.0.1/8", "except": ["10.1.0.0/16", "10.2.0.0/16"]}},
        {"ipBlock": {"cidr": "2001:db8::/32"}},
        {"podSelector": {"matchLabels": None, "matchExpressions": None}},
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": None}},
    ],
)
def test_a_peer_is_taken(peer: dict[str, Any]) -> None:
    assert parse_scrapers(json.dumps([peer])) == (peer,)


@pytest.mark.parametrize(
    ("peer", "words"),
    [
        ({"podSelector": {"app": "prometheus"}}, 'app is no field of podSelector; .*write {"podSelector": {"matchLab'),
        ({"namespaceSelector": {"matchlabels": {}}}, "matchlabels is no field of namespaceSelector"),
        ({"podSelector": {"matchLabels": ["app"]}}, "podSelector.matchLabels is no object of labels; write"),
        ({"podSelector": {"matchLabels": {"tier": 5}}}, "podSelector.matchLabels: tier: 5 is no text.*in quotes"),
        ({"podSelector": {"matchLabels": {"app": "a b"}}}, "app: 'a b' is no label's value; write"),
        ({"podSelector": {"matchLabels": {"a b": "c"}}}, "'a b' is no label's name; write"),
        ({"podSelector": {"matchExpressions": {}}}, "podSelector.matchExpressions is no list; write"),
        (expressions("app"), r"matchExpressions\[0\] needs key and operator; write"),
        (expressions({"key": "app"}), r"matchExpressions\[0\] needs key and operator; write"),
        (expressions({"key": "app", "operator": "Exists", "value": "a"}), "value is no field of podSelector.matchExpr"),
        (expressions({"key": "app", "operator": "Equals", "values": ["a"]}), "operator: 'Equals' is none; write one"),
        (expressions({"key": "app", "operator": ["In"], "values": ["a"]}), "is none; write one of In, NotIn, Exists"),
        (expressions({"key": "app", "operator": "In"}), "values: In needs a list of some"),
        (expressions({"key": "app", "operator": "In", "values": "a"}), "values: In needs a list of some"),
        (expressions({"key": "app", "operator": "In", "values": ["a b"]}), r"\[0\]: app: 'a b' is no label's value"),
        (expressions({"key": "a", "operator": "Exists", "values": ["b"]}), "Exists needs none; leave them out"),
        (expressions({"key": 1.5, "operator": "Exists"}), r"\[0\]: 1.5 is no label's name"),
        ({"ipBlock": {"cidr": "10.0.0.0/8"}, "namespaceSelector": {}}, "ipBlock stands alone in its peer; write"),
        ({"ipBlock": {}}, 'ipBlock.cidr: null is no range of addresses; write "10.0.0.0/8"'),
        ({"ipBlock": {"cidr": "10.0.0.0"}}, "ipBlock.cidr: .* is no range"),
        ({"ipBlock": {"cidr": "10.0.0.0/255.0.0.0"}}, "ipBlock.cidr: .* is no range"),
        ({"ipBlock": {"cidr": "10.0.0.0/33"}}, "ipBlock.cidr: .* is no range"),
        ({"ipBlock": {"CIDR": "10.0.0.0/8"}}, "CIDR is no field of ipBlock; those are cidr, except: write"),
        ({"ipBlock": {"cidr": "10.0.0.0/8", "except": "10.1.0.0/16"}}, "ipBlock.except is no list; write"),
        ({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.1.0.0/16"]}}, r"except\[0\]: 11.1.0.0/16 is no part of 10"),
        ({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}}, "write a smaller range in that"),
        ({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["fd00::/64"]}}, "is no part of"),
    ],
)
def test_a_peer_that_an_api_server_would_refuse_is_refused_with_the_correct_form(
    peer: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        parse_scrapers(json.dumps([peer]))
