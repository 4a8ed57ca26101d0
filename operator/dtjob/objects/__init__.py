# SPDX-License-Identifier: Apache-2.0
"""A job's Kubernetes objects as they should be: pure functions of the manifest."""
