"""Where W&B keeps its parts."""
