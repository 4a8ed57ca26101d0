# SPDX-License-Identifier: Apache-2.0
"""Everything that is decided about one job. Pure: what is observed and the time go in, actions and status come out."""
