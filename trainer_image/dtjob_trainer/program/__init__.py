# SPDX-License-Identifier: Apache-2.0
"""What a job's program finds in place of TensorFlow's and Keras's own: the job's strategy, and dtjob's loop."""
