# SPDX-License-Identifier: Apache-2.0
"""What users write: manifests in files, and scripts with options, from which manifests are made."""
