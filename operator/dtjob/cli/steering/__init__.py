# SPDX-License-Identifier: Apache-2.0
"""Commands that change jobs of a cluster, and that bring something out of them."""
