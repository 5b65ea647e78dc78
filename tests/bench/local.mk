# tests/bench
include tests/bench/kernels.mk
