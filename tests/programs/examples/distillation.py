# SPDX-License-Identifier: Apache-2.0
"""A student learns from a teacher: compute_loss of its own with call, both trained by fit."""

import json

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(5)
rng = np.random.default_rng(1)
x = rng.random((320, 10)).astype("float32")
y = (x[:, 0] + x[:, 1] > x[:, 2] + x[:, 3]).astype("int64")


class Distiller(keras.Model):
    def __init__(self, student, teacher):
        super().__init__()
        self.teacher = teacher
        self.student = student

    def compile(self, optimizer, metrics, student_loss_fn, distillation_loss_fn, alpha=0.1, temperature=3):
        super().compile(optimizer=optimizer, metrics=metrics)
        self.student_loss_fn = student_loss_fn
        self.distillation_loss_fn = distillation_loss_fn
        self.alpha = alpha
        self.temperature = temperature

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False):
        teacher_pred = self.teacher(x, training=False)
        student_loss = self.student_loss_fn(y, y_pred)
        distillation_loss = self.distillation_loss_fn(
            ops.softmax(teacher_pred / self.temperature, axis=1),
            ops.softmax(y_pred / self.temperature, axis=1),
        ) * (self.temperature**2)
        return self.alpha * student_loss + (1 - self.alpha) * distillation_loss

    def call(self, x):
        return self.student(x)


def net(width, name):
    return keras.Sequential([keras.Input((10,)), layers.Dense(width, "relu"), layers.Dense(2)], name=name)


teacher, student = net(32, "teacher"), net(4, "student")
student_scratch = keras.models.clone_model(student)
teacher.compile(
    optimizer=keras.optimizers.Adam(0.01),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[keras.metrics.SparseCategoricalAccuracy()],
)
taught = teacher.fit(x[:256], y[:256], epochs=2, shuffle=False)
teacher.evaluate(x[256:], y[256:])
distiller = Distiller(student=student, teacher=teacher)
distiller.compile(
    optimizer=keras.optimizers.Adam(0.01),
    metrics=[keras.metrics.SparseCategoricalAccuracy()],
    student_loss_fn=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    distillation_loss_fn=keras.losses.KLDivergence(),
    alpha=0.1,
    temperature=10,
)
distilled = distiller.fit(x[:256], y[:256], epochs=3, shuffle=False)
evaluated = distiller.evaluate(x[256:], y[256:])
student_scratch.compile(
    optimizer=keras.optimizers.Adam(0.01),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[keras.metrics.SparseCategoricalAccuracy()],
)
scratch = student_scratch.fit(x[:256], y[:256], epochs=1, shuffle=False)
print(
    "RESULT",
    json.dumps(
        {
            "taught": taught.history,
            "distilled": distilled.history,
            "evaluated": evaluated,
            "scratch": scratch.history,
        }
    ),
)
