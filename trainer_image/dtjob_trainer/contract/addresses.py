# SPDX-License-Identifier: Apache-2.0
"""Addresses of tasks in the form of the cluster file: `host:port`."""


def host_of(address: str) -> str:
    """The host in `host:port`, without the brackets of an IPv6 address."""
    return address.rpartition(":")[0].strip("[]")
