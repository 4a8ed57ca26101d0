# SPDX-License-Identifier: Apache-2.0
"""The rules beyond single fields, each once in CEL, by what they are about."""
