# SPDX-License-Identifier: Apache-2.0
"""One device's numbers by construction: what each tensor of a replica's trace is, and what operations make of it.

A masked mean is an example. The mask is rows, and its sum is partial. A partial divisor is summed over the replicas
first, so that each replica divides by the count of all. The sum of its rows over that count is partial, and these parts
add up to one device's loss.
"""
