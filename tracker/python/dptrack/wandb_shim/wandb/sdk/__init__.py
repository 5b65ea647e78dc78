# SPDX-License-Identifier: Apache-2.0
"""Where W&B keeps its parts."""
