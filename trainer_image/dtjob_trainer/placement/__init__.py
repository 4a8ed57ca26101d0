# SPDX-License-Identifier: Apache-2.0
"""One device's numbers by construction: what each tensor of a replica's trace is, and what operations make of it."""
