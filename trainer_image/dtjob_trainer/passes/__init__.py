# SPDX-License-Identifier: Apache-2.0
"""Which batches of the data make an epoch, read and compared by all tasks alike."""
