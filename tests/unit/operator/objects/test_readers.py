# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

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
