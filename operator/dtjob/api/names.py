# SPDX-License-Identifier: Apache-2.0
"""The names of the API, for whoever needs nothing else of it. Imports nothing."""

GROUP = "training.dtjob.dev"
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "DistributedTrainingJob"
PLURAL = "distributedtrainingjobs"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
"""On everything that dtjob makes, so in no template."""
TRAINING_CONTAINER = "tensorflow"
"""Name of the training container, as in TFJob. Its end is the end of the task."""
CLAIM_SUFFIX = "-checkpoints"
"""What follows the job's name in the name of the claim of checkpoint.storage.volumeClaimTemplate."""
