# tests/ops
