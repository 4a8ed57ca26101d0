# SPDX-License-Identifier: Apache-2.0
"""Tests of what the providers of clusters ask for."""
