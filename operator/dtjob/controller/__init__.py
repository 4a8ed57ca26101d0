# SPDX-License-Identifier: Apache-2.0
"""Carrying plans out over any cluster: what we believe, who is due, and the calls of a plan in their order."""
