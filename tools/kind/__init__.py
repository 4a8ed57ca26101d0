# SPDX-License-Identifier: Apache-2.0
"""A kind cluster on a machine that may have neither Docker nor an image registry: `make kind`."""
