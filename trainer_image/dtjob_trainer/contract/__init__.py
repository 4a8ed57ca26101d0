"""What the supervisor and the training process agree on, among themselves and with the operator. No TensorFlow."""
