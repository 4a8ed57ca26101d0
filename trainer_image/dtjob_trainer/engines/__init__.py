# SPDX-License-Identifier: Apache-2.0
"""Running steps on the devices of a strategy: one engine for each way of running them."""
