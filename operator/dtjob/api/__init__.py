# SPDX-License-Identifier: Apache-2.0
"""What a user writes: the manifest, one file for each of its blocks."""
