# SPDX-License-Identifier: Apache-2.0
"""How the gradients of several replicas become those that one device has."""
