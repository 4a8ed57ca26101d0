# SPDX-License-Identifier: Apache-2.0
"""TF_CONFIG read by the program, MultiWorkerMirroredStrategy, BackupAndRestore, and a path to save at for each task."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

tf_config = json.loads(os.environ.get("TF_CONFIG", '{"cluster": {"worker": ["localhost:1"]}}'))
num_workers = sum(len(tasks) for role, tasks in tf_config["cluster"].items() if role != "ps")
print("workers:", num_workers)

keras.utils.set_random_seed(5)
strategy = tf.distribute.MultiWorkerMirroredStrategy() if "task" in tf_config else tf.distribute.get_strategy()


def mnist_dataset(batch_size):
    rng = np.random.default_rng(1)
    x = rng.random((320, 28, 28)).astype("float32")
    y = x[:, :14].mean(axis=(1, 2)) > x[:, 14:].mean(axis=(1, 2))
    dataset = (
        tf.data.Dataset.from_tensor_slices((x, y.astype("int64")))
        .shuffle(320, seed=2, reshuffle_each_iteration=False)
        .repeat()
    )
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.batch(batch_size).with_options(options)


def build_and_compile_cnn_model():
    model = keras.Sequential(
        [
            keras.layers.InputLayer(shape=(28, 28)),
            keras.layers.Reshape(target_shape=(28, 28, 1)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(2),
        ]
    )
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=keras.optimizers.SGD(learning_rate=0.01),
        metrics=["accuracy"],
    )
    return model


global_batch_size = 64
multi_worker_dataset = mnist_dataset(global_batch_size)
with strategy.scope():
    multi_worker_model = build_and_compile_cnn_model()

directory = tempfile.mkdtemp()
callbacks = [keras.callbacks.BackupAndRestore(backup_dir=os.path.join(directory, "backup"))]
history = multi_worker_model.fit(multi_worker_dataset, epochs=3, steps_per_epoch=6, callbacks=callbacks)


def _is_chief(task_type, task_id, cluster_spec):
    return (
        task_type is None
        or task_type == "chief"
        or (task_type == "worker" and task_id == 0 and "chief" not in cluster_spec.as_dict())
    )


def write_filepath(filepath, task_type, task_id, cluster_spec):
    dirpath, base = os.path.dirname(filepath), os.path.basename(filepath)
    if not _is_chief(task_type, task_id, cluster_spec):
        dirpath = os.path.join(dirpath, "workertemp_" + str(task_id))
        tf.io.gfile.makedirs(dirpath)
    return os.path.join(dirpath, base)


model_path = os.path.join(directory, "keras-model.keras")
resolver = strategy.cluster_resolver
if resolver is not None:
    task_type, task_id, cluster_spec = resolver.task_type, resolver.task_id, resolver.cluster_spec()
else:
    task_type, task_id, cluster_spec = None, None, None
write_model_path = write_filepath(model_path, task_type, task_id, cluster_spec)
multi_worker_model.save(write_model_path)
if not _is_chief(task_type, task_id, cluster_spec):
    tf.io.gfile.rmtree(os.path.dirname(write_model_path))
else:
    assert os.path.exists(model_path)

checkpoint_dir = os.path.join(directory, "ckpt")
checkpoint = tf.train.Checkpoint(model=multi_worker_model)
write_checkpoint_dir = write_filepath(checkpoint_dir, task_type, task_id, cluster_spec)
checkpoint_manager = tf.train.CheckpointManager(checkpoint, directory=write_checkpoint_dir, max_to_keep=1)
checkpoint_manager.save()
latest_checkpoint = tf.train.latest_checkpoint(write_checkpoint_dir)
checkpoint.restore(latest_checkpoint)
after = multi_worker_model.evaluate(multi_worker_dataset, steps=3)
print(
    "RESULT",
    json.dumps(
        {
            "loss": history.history["loss"],
            "accuracy": history.history["accuracy"],
            "after": after,
            "weights": float(sum(np.abs(w).sum() for w in multi_worker_model.get_weights())),
        }
    ),
)
