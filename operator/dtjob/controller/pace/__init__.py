# SPDX-License-Identifier: Apache-2.0
"""When something is done: queues, slots of calls, backoffs, and what waits for more of its kind."""
