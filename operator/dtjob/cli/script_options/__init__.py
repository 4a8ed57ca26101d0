# SPDX-License-Identifier: Apache-2.0
"""Options of a script's job that become parts of its manifest: variables, resources, mounts, and any field."""
