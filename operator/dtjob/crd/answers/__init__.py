# SPDX-License-Identifier: Apache-2.0
"""What `dtjob validate` says of a manifest that an API server refuses."""
