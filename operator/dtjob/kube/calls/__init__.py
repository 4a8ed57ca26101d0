# SPDX-License-Identifier: Apache-2.0
"""Calls to an API server."""
