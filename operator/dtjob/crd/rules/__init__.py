# SPDX-License-Identifier: Apache-2.0
"""The rules beyond single fields, each once with its CEL and its Python, by what they are about."""
