# SPDX-License-Identifier: Apache-2.0
"""The operator beside its peer and the limit, on one API server: a file for each scenario, and what they share."""
