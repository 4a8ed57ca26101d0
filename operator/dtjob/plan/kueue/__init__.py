"""What Kueue's objects say: slices, places, and the words for users."""
