# SPDX-License-Identifier: Apache-2.0
"""One step of a replica, traced: losses, metrics, optimizers, and what the step returns, as on one device."""
