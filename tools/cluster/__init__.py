# SPDX-License-Identifier: Apache-2.0
"""Clusters to test on: bare nodes, kind or an existing one, and the means to talk to them."""
