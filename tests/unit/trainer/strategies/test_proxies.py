# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.proxies: whom gRPC calls itself where containers have a proxy."""

import pytest

from dtjob_trainer.strategies.proxies import past_proxies

PODS = {"chief": ["digits-chief-0.digits:2222"], "worker": [f"digits-worker-{index}.digits:2222" for index in range(3)]}
HERE = {"chief": ["127.0.0.1:4001"], "worker": ["[::1]:4002", "localhost:4003"]}
PROXY = {"https_proxy": "http://proxy:3128"}


def test_without_a_proxy_nothing_is_set() -> None:
    assert past_proxies({"no_proxy": ".svc", "https_proxy": ""}, PODS) == {}


@pytest.mark.parametrize("name", ["grpc_proxy", "https_proxy", "http_proxy"])
def test_the_domain_of_the_pods_is_in_no_grpc_proxy(name: str) -> None:
    assert past_proxies({name: "http://proxy:3128"}, PODS) == {"no_grpc_proxy": ".digits"}


def test_addresses_and_single_word_hosts_are_in_no_grpc_proxy() -> None:
    assert past_proxies(PROXY, HERE) == {"no_grpc_proxy": "127.0.0.1,::1,localhost"}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"no_proxy": ".svc, 10.0.0.0/8"}, ".svc,10.0.0.0/8,.digits"),
        ({"no_grpc_proxy": "a", "no_proxy": ".svc"}, "a,.digits"),
        ({"no_proxy": ".digits"}, ".digits"),
    ],
)
def test_the_users_hosts_stay_in_no_grpc_proxy(given: dict[str, str], named: str) -> None:
    """gRPC asks the one variable alone once that is set."""
    assert past_proxies({**PROXY, **given}, PODS) == {"no_grpc_proxy": named}
