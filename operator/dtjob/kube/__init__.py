# SPDX-License-Identifier: Apache-2.0
"""The operator against an API server: the only home of kopf."""
