# SPDX-License-Identifier: Apache-2.0
"""`fit`, `train` and the evaluator: what happens from the first step to the last."""
