# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's tf.data service in a job: its servers, and the Datasets whose examples data workers make."""
