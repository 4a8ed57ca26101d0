"""`dtjob convert`: a TFJob of kubeflow.org/v1 as a DistributedTrainingJob."""
