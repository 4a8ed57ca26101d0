# SPDX-License-Identifier: Apache-2.0
"""Files that outlive a process: checkpoints, the mark of a run that is done, saved models."""
