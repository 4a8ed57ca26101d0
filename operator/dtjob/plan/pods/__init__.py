# SPDX-License-Identifier: Apache-2.0
"""Which pods and shared objects there should be now, and the calls that make or delete them."""
