# SPDX-License-Identifier: Apache-2.0
"""What Kueue's objects say: slices, places, and the words for users."""
