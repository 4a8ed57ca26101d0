# SPDX-License-Identifier: Apache-2.0
"""The Python client: jobs as objects, here or in a cluster."""
