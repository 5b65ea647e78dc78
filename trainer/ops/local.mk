# One folder per op.
