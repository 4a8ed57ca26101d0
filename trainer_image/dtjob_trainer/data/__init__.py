# SPDX-License-Identifier: Apache-2.0
"""Which examples a task trains on, in which order, from whatever the program has them in."""
