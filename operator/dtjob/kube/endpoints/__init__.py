# SPDX-License-Identifier: Apache-2.0
"""The operator's own endpoints, and what it asks of the supervisors."""
