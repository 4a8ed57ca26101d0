"""PID 1 of a training container: keeps one training process running, and tells how it is. No TensorFlow."""
