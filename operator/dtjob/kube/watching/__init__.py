# SPDX-License-Identifier: Apache-2.0
"""What is listed and watched: kopf for jobs, one informer for every other kind."""
