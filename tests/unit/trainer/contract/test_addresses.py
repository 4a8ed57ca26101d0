# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.addresses: `host:port`."""

import pytest

from dtjob_trainer.contract.addresses import host_of


@pytest.mark.parametrize(
    ("address", "host"),
    [("[fd00::1]:2222", "fd00::1"), ("digits-worker-0.digits:2222", "digits-worker-0.digits"), ("no-port", "")],
)
def test_an_address_is_split_into_its_host(address: str, host: str) -> None:
    assert host_of(address) == host
