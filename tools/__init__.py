# SPDX-License-Identifier: Apache-2.0
"""Development tools: Kubernetes programs, images and clusters of this machine's own; none of it is in the product."""
