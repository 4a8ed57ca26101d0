# SPDX-License-Identifier: Apache-2.0
"""What is observed of one job and its objects, read into facts, and the situation in which a plan is made."""
