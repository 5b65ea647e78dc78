"""Callbacks that W&B has itself."""
