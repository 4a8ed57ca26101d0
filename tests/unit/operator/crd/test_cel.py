# SPDX-License-Identifier: Apache-2.0
"""CEL in Python says what an API server says. (`tests/cluster/test_refusal.py` asks a real one the same rules.)"""

from typing import Any

import pytest

from dtjob.crd import cel

SELF: dict[str, Any] = {
    "name": "a-1",
    "replicas": 3,
    "on": True,
    "roles": ["ps", "worker"],
    "limits": {"cpu": 4, "memory": "500m"},
    "containers": [{"name": "one", "image": "x"}, {"name": "two"}],
}
TRUE = (
    "has(self.name) && !has(self.image)",
    "has(self.image) || self.replicas == 3",
    "self.replicas - 1 - 1 == 1",
    "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9",
    "!self.on == false",
    "self.on ? self.replicas > 2 : self.image",
    "(has(self.image) ? 1 : 0) + (self.on ? 10 : 20) == 10",
    "'ps' in self.roles && !('chief' in self.roles)",
    "self.roles == ['ps', 'worker'] && [].size() == 0",
    "self.roles.all(r, r != 'chief') && self.roles.exists(r, r.startsWith('w'))",
    "self.roles.exists_one(r, r == 'ps') && !self.roles.exists_one(r, true)",
    "self.roles.filter(r, r == 'ps').size() == 1",
    "self.containers.map(c, c.name).exists(n, n == 'two')",
    "self.containers.all(c, self.roles.all(r, r != c.name))",
    "[self.containers].all(b, b.exists(c, has(c.image) && c.image == 'x'))",
    "self.limits.all(k, type(self.limits[k]) == int || string(self.limits[k]).matches('^[0-9]+m$'))",
    "self.name.matches('^a') && !self.name.matches('^1') && self.name.matches('-')",
    "size(self.name) == 3 && self.name.contains('-') && self.name.split('-') == ['a', '1']",
    "quantity(string(self.limits.cpu)).compareTo(quantity(self.limits['memory'])) > 0 && isQuantity('1Gi')",
    r"'it\'s' == 'it\'s' && 'a.b'.matches('^a\\.b$') && !'axb'.matches('^a\\.b$')",
)


@pytest.mark.parametrize("rule", TRUE)
def test_a_rule_means_what_it_means_to_an_api_server(rule: str) -> None:
    assert cel.holds(rule, {"self": SELF})
    assert not cel.holds(f"!({rule})", {"self": SELF})


def test_a_text_with_a_line_break_behind_it_does_not_end_before_it() -> None:
    assert not cel.holds("self.matches('^a$')", {"self": "a\n"})


def test_a_rule_on_a_change_sees_the_value_before() -> None:
    assert cel.holds("self.a == oldSelf.a", {"self": {"a": [1]}, "oldSelf": {"a": [1]}})
    assert not cel.holds("self.a == oldSelf.a", {"self": {"a": [1]}, "oldSelf": {"a": [2]}})


def test_a_field_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        cel.holds("self.image == 'x'", {"self": SELF})


@pytest.mark.parametrize("text", ["self.a &&", "(self.a", "self.a self.b", "has(self.a", "[1, 2"])
def test_a_text_that_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises((ValueError, IndexError, SyntaxError)):
        cel.holds(text, {"self": SELF})
