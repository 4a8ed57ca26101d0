# SPDX-License-Identifier: Apache-2.0
"""Tests of Docker and of the image of kind's nodes."""
