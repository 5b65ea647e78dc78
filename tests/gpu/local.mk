# The cuda backend on the fake device of tests/fakes/cuda (or, with DPTRAIN_GPU=1, on a GPU): every op, whole nets, streams,
# several ranks, what it refuses. `full` as an argument of the first three scripts asks for all.
gpu_tests = tests/gpu/ops.sh tests/gpu/nets.py tests/gpu/products.py tests/gpu/ranks.py tests/gpu/refusals.py tests/gpu/trace.py
TESTS += $(gpu_tests)
cmocka_tests += tests/gpu/streams_test
EXTRA_DIST += $(gpu_tests)
EXTRA_DIST += tests/gpu/libraries.sh tests/gpu/h200.json tests/gpu/registers.py tests/gpu/registers.txt
if HAVE_CUDA
cmocka_tests += tests/gpu/calls_test
if HAVE_CUDNN
cmocka_tests += tests/gpu/judge_test
endif
endif
tests_gpu_calls_test_SOURCES = tests/gpu/calls_test.c trainer/backends/cuda/calls.c trainer/backends/cuda/calls.def \
	trainer/backends/cuda/calls.h
tests_gpu_calls_test_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DREAL_FOLDERS='"$(CUDA_FOLDERS)"'
tests_gpu_judge_test_SOURCES = tests/gpu/judge_test.c $(graph_test_net) trainer/backends/cuda/calls.c \
	trainer/backends/cuda/dnn.c
tests_gpu_judge_test_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DDPT_CUDA_FOLDERS='"$(CUDA_FOLDERS)"'
