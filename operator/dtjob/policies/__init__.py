"""The rules by which a job lives, one pure function a file."""
