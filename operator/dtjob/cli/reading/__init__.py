"""What commands read: manifests from files, folders and standard input."""
