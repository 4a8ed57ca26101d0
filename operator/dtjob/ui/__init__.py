# SPDX-License-Identifier: Apache-2.0
"""The page of `dtjob ui` and `dtjob run --ui`: jobs as they train, read-only, for browsers of this machine."""
