"""What a user writes: the manifest, one file for each of its blocks."""
