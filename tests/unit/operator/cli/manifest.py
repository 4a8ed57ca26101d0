"""The job that the tests of the command line begin with."""

from __future__ import annotations

GOOD = """
apiVersion: training.dtjob.dev/v1alpha1
kind: DistributedTrainingJob
metadata: {name: digits}
spec:
  strategy: MultiWorkerMirrored
  image: dtjob-trainer:dev
  program: {entry: digits.py, args: [--epochs=20]}
  replicas: {chief: {}, worker: {count: 2}, evaluator: {}}
  checkpoint: {directory: /checkpoints, volume: {emptyDir: {}}, everySteps: 100}
"""
