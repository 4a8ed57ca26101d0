# SPDX-License-Identifier: Apache-2.0
"""Whether TensorFlow's own port is free."""

import socket


def port_is_free(port: int) -> bool:
    """Whether TensorFlow can listen on TCP `port`. Connections in TIME_WAIT do not prevent that."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
