# SPDX-License-Identifier: Apache-2.0
"""The blocks of the spec, one in a file."""
