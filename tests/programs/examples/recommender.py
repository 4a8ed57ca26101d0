# SPDX-License-Identifier: Apache-2.0
"""Users and films as embeddings: a subclassed model with a dot product, and a two-tower model with its own loss."""

import json

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(3)
rng = np.random.default_rng(12)
num_users, num_movies, embedding_size = 30, 40, 8
pairs = np.stack([rng.integers(0, num_users, 500), rng.integers(0, num_movies, 500)], axis=1)
ratings = ((pairs[:, 0] % 5 + pairs[:, 1] % 7) / 10.0).astype("float32")
x_train, x_val, y_train, y_val = pairs[:400], pairs[400:], ratings[:400], ratings[400:]


class RecommenderNet(keras.Model):
    def __init__(self, num_users, num_movies, embedding_size, **kwargs):
        super().__init__(**kwargs)
        self.user_embedding = layers.Embedding(
            num_users,
            embedding_size,
            embeddings_initializer="he_normal",
            embeddings_regularizer=keras.regularizers.l2(1e-6),
        )
        self.user_bias = layers.Embedding(num_users, 1)
        self.movie_embedding = layers.Embedding(
            num_movies,
            embedding_size,
            embeddings_initializer="he_normal",
            embeddings_regularizer=keras.regularizers.l2(1e-6),
        )
        self.movie_bias = layers.Embedding(num_movies, 1)

    def call(self, inputs):
        user_vector = self.user_embedding(inputs[:, 0])
        user_bias = self.user_bias(inputs[:, 0])
        movie_vector = self.movie_embedding(inputs[:, 1])
        movie_bias = self.movie_bias(inputs[:, 1])
        dot_user_movie = ops.sum(user_vector * movie_vector, axis=1, keepdims=True)
        return ops.nn.sigmoid(dot_user_movie + user_bias + movie_bias)


model = RecommenderNet(num_users, num_movies, embedding_size)
model.compile(loss=keras.losses.BinaryCrossentropy(), optimizer=keras.optimizers.Adam(learning_rate=0.01))
history = model.fit(
    x=x_train, y=y_train, batch_size=64, epochs=3, verbose=1, validation_data=(x_val, y_val), shuffle=False
)
movies = np.arange(num_movies)
user_movie_array = np.hstack(([[3]] * len(movies), movies[:, None]))
predicted = model.predict(user_movie_array).flatten()


class Retrieval(keras.Model):
    """Each row's film against those of all rows of its batch."""

    def __init__(self):
        super().__init__()
        self.users = keras.Sequential([layers.Embedding(num_users, 8), layers.Dense(8)])
        self.movies = keras.Sequential([layers.Embedding(num_movies, 8), layers.Dense(8)])
        self.loss_fn = keras.losses.CategoricalCrossentropy(from_logits=True)

    def call(self, inputs):
        return ops.matmul(self.users(inputs["user"]), ops.transpose(self.movies(inputs["movie"])))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        scores = ops.matmul(self.users(x["user"]), ops.transpose(self.movies(x["movie"])))
        return self.loss_fn(ops.eye(ops.shape(scores)[0]), scores)


dataset = tf.data.Dataset.from_tensor_slices({"user": x_train[:, 0], "movie": x_train[:, 1]}).batch(50).cache()
retrieval = Retrieval()
retrieval.compile(optimizer=keras.optimizers.Adagrad(learning_rate=0.5))
retrieved = retrieval.fit(dataset, epochs=2)
print(
    "RESULT",
    json.dumps({"history": history.history, "predicted": predicted.tolist(), "retrieved": retrieved.history}),
)
