"""What training writes for TensorBoard."""
