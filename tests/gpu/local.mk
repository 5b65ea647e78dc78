# The cuda backend on the fake device of tests/fakes/cuda (or, with DPTRAIN_GPU=1, on a GPU): every op, whole nets, what
# it refuses. `full` as an argument of the first two asks for all of it.
gpu_tests = tests/gpu/ops.sh tests/gpu/nets.py tests/gpu/refusals.py
TESTS += $(gpu_tests)
EXTRA_DIST += $(gpu_tests)
