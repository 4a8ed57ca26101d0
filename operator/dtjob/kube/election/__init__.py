# SPDX-License-Identifier: Apache-2.0
"""Leader election."""
