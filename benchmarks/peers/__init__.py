# SPDX-License-Identifier: Apache-2.0
"""What dtjob is measured beside: Kubeflow's Training Operator, and a bare loop of POSTs as the limit."""
