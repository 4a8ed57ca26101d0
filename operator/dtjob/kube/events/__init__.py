# SPDX-License-Identifier: Apache-2.0
"""Events of Kubernetes: what is told, how often, and in which objects."""
