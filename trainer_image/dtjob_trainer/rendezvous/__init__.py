"""Who of a group may start, and when: no member goes before all are there. No TensorFlow."""
