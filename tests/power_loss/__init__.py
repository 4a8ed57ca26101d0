# SPDX-License-Identifier: Apache-2.0
"""Power losses: a mounted disk that records what all processes write, and what a machine finds of it afterwards."""
