# The cuda backend on the fake device of tests/fakes/cuda (or, with DPTRAIN_GPU=1, on a GPU): every op, whole nets, streams,
# what it refuses. `full` as an argument of the first two scripts asks for all.
gpu_tests = tests/gpu/ops.sh tests/gpu/nets.py tests/gpu/refusals.py
TESTS += $(gpu_tests)
cmocka_tests += tests/gpu/streams_test
EXTRA_DIST += $(gpu_tests)
