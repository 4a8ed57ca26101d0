# SPDX-License-Identifier: Apache-2.0
"""The training process among its peers: its signals, its reports and its end."""
