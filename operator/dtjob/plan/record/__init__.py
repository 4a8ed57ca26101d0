# SPDX-License-Identifier: Apache-2.0
"""What a status holds and how it changes, beyond the models in `api/status/`."""
