# SPDX-License-Identifier: Apache-2.0
"""Callbacks that W&B has itself."""
