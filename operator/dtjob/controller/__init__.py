# SPDX-License-Identifier: Apache-2.0
"""Carries plans out over any cluster: what is known, which job is due, and the calls of a plan in their order."""
