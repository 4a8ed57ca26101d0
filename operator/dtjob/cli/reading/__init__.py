# SPDX-License-Identifier: Apache-2.0
"""What commands read: manifests from files, folders and standard input."""
