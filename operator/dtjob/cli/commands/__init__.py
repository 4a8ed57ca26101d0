# SPDX-License-Identifier: Apache-2.0
"""The arguments of the commands. Each file has those of one group, and imports what they need when they run."""
