"""Where callbacks look for the class of runs."""
from wandb._run import Run  # noqa: F401
