# SPDX-License-Identifier: Apache-2.0
"""The pod of one task: its containers, environment, devices, security and place."""
