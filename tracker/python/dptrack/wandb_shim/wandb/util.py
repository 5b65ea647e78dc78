# SPDX-License-Identifier: Apache-2.0
"""What programs take of W&B's helpers."""
from wandb._run import new_id


def generate_id(length=8):
    """An id as runs have."""
    return (new_id() * (length // 8 + 1))[:length]
