# SPDX-License-Identifier: Apache-2.0
"""The life of a job as a whole: its phase, deadlines, suspension, success, and what stays after its end."""
