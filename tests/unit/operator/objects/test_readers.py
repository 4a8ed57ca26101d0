# SPDX-License-Identifier: Apache-2.0
import json
from typing import Any

import pytest

from dtjob.objects.readers import parse_scrapers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prometheus", "is no JSON list"),
        ("{}", "is no JSON list"),
        ("[" * 100_000, "is no JSON list"),
        ("[{}]", "is no peer"),
        ("[1]", "is no peer.*; write"),
        ('[{"labels": {}}]', "labels is no field of a peer"),
        ('[{"podSelector": "prometheus"}]', "each field of a peer is an object"),
    ],
)
def test_a_scraper_that_is_no_peer_is_refused_and_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_scrapers(text)


@pytest.mark.parametrize(
    "peers",
    [
        [],
        [{"podSelector": {"matchLabels": {"app": "prometheus"}}, "namespaceSelector": {}}],
        [{"podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, {"namespaceSelector": {}}],
        [{"ipBlock": {"cidr": "10.0.0.1/8", "except": ["10.1.0.0/16", "10.2.0.0/16"]}}],
    ],
)
def test_peers_are_taken(peers: list[dict[str, Any]]) -> None:
    assert parse_scrapers(json.dumps(peers)) == tuple(peers)


@pytest.mark.parametrize(
    ("peer", "words"),
    [
        ({"podSelector": {"app": "prometheus"}}, 'app is no field of podSelector; .*write {"podSelector": {"matchLab'),
        ({"namespaceSelector": {"matchlabels": {}}}, "matchlabels is no field of namespaceSelector"),
        ({"ipBlock": {"CIDR": "10.0.0.0/8"}}, "CIDR is no field of ipBlock; those are cidr, except: write"),
    ],
)
def test_a_peer_with_a_field_that_an_api_server_would_drop_is_refused(peer: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_scrapers(json.dumps([peer]))
