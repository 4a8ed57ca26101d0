# SPDX-License-Identifier: Apache-2.0
"""The job that the tests of the command line begin with."""

GOOD = """
apiVersion: training.dtjob.dev/v1beta1
kind: DistributedTrainingJob
metadata: {name: digits}
spec:
  strategy: MultiWorkerMirrored
  image: dtjob-trainer:dev
  program: {entrypoint: digits.py, args: [--epochs=20]}
  replicaSpecs: {chief: {}, worker: {replicas: 2}, evaluator: {}}
  checkpoint: {storage: {volume: {emptyDir: {}}}, everySteps: 100}
"""
