"""`fit`, `train` and the evaluator: what happens from the first step to the last."""
