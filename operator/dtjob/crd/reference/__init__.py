# SPDX-License-Identifier: Apache-2.0
"""docs/reference/api.md, generated from the definition: every field of the spec and the status, phases, conditions."""
