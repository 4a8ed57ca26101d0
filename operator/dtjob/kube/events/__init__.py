# SPDX-License-Identifier: Apache-2.0
"""Events of Kubernetes: which are recorded, how often, and in which objects."""
