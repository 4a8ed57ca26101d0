# SPDX-License-Identifier: Apache-2.0
"""The form that every Kubernetes object has here."""

from typing import Any

Manifest = dict[str, Any]
"""A Kubernetes object as plain JSON."""
