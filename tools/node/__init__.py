# SPDX-License-Identifier: Apache-2.0
"""The parts of a bare node, each started in namespaces of its own: containerd, kubelet, CoreDNS, network, volumes."""
