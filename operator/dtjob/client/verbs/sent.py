# SPDX-License-Identifier: Apache-2.0
"""The program that reads the files of a job, in the helper pod of `dtjob fetch` or on this machine.

It needs only the standard library, and TensorFlow for buckets.
"""

PROGRAM = r"""
import fnmatch, io, json, os, sys, tarfile

top, mode, patterns = sys.argv[1].rstrip("/"), sys.argv[2], sys.argv[3:]
if "://" in top:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from tensorflow.io import gfile
    walk, size, read = gfile.walk, lambda path: gfile.stat(path).length, lambda path: gfile.GFile(path, "rb")
else:
    walk, size, read = os.walk, os.path.getsize, lambda path: open(path, "rb")
found = {}
for folder, _, names in walk(top):
    for name in names:
        path = folder.rstrip("/") + "/" + name
        inside = path[len(top) + 1:]
        parts = inside.split("/")
        prefixes = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        if not patterns or any(fnmatch.fnmatch(one, pattern.rstrip("/")) for pattern in patterns for one in prefixes):
            found[inside] = path
if mode == "list":
    json.dump({name: size(path) for name, path in sorted(found.items())}, sys.stdout)
else:
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for name, path in sorted(found.items()):
            try:
                with read(path) as file:
                    entry = tarfile.TarInfo(name)
                    entry.size = size(path)
                    entry.mode = 0o644
                    archive.addfile(entry, file)
            except FileNotFoundError:
                continue
"""
