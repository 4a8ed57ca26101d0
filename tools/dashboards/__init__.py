# SPDX-License-Identifier: Apache-2.0
"""The dashboards of the chart: what is on them, as Grafana reads them, and as pictures of a real run."""
