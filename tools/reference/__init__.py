# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference/ that are made from the code."""
