# SPDX-License-Identifier: Apache-2.0
"""`dtjob submit`: a script on this machine as a job of a cluster."""
