# SPDX-License-Identifier: Apache-2.0
"""What Kueue's objects say: slices and places."""
