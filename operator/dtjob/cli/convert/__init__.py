# SPDX-License-Identifier: Apache-2.0
"""`dtjob convert`: a TFJob of kubeflow.org/v1 as a DistributedTrainingJob."""
