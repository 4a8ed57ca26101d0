# SPDX-License-Identifier: Apache-2.0
"""All that dtjob replaces in TensorFlow, Keras, tf_keras and Python, and all private names of theirs that it uses."""
