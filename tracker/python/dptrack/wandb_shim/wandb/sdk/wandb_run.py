# SPDX-License-Identifier: Apache-2.0
"""Where callbacks look for the class of runs."""
from wandb._run import Run  # noqa: F401
