# SPDX-License-Identifier: Apache-2.0
"""Storage where a file is there as a whole once it is closed, and where a rename writes all of it again."""

import tensorflow as tf

from dtjob_trainer.errors import CheckpointError

SCHEMES = ("gs://", "s3://")


def holds(path: str) -> bool:
    """Whether `path` is in an object store. What is written there gets its final name at once."""
    return path.startswith(SCHEMES)


def is_known(path: str) -> bool:
    """Whether TensorFlow in this process has a file system for `path`."""
    scheme = path.partition("://")[0] if "://" in path else ""
    return scheme in tf.io.gfile.get_registered_schemes()


def check(path: str) -> None:
    """Raise CheckpointError for a URI that TensorFlow in this process has no file system for."""
    if not is_known(path):
        scheme = path.partition("://")[0]
        raise CheckpointError(
            f"checkpoint.storage.uri {path}: TensorFlow in this image has no file system for {scheme}://; import a "
            "package that brings one, such as tensorflow_io, at the begin of the program, or mount the bucket as "
            "checkpoint.storage.volume"
        )
