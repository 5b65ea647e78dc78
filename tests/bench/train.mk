# SPDX-License-Identifier: Apache-2.0
# Complete steps compared with oneDNN's own matrix product: tests/bench/train
EXTRA_DIST += tests/bench/train
if HAVE_ONEDNN
EXTRA_PROGRAMS += tests/bench/parts/matmul
tests_bench_parts_matmul_SOURCES = tests/bench/parts/matmul.c
tests_bench_parts_matmul_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CPPFLAGS)
tests_bench_parts_matmul_LDADD = $(ONEDNN_LIBS)
endif

# First steps, choice of kernels, memory: tests/bench/footprint
EXTRA_DIST += tests/bench/footprint

# Compared with PyTorch, and with the limit of the cores' arithmetic: tests/bench/compare-pytorch
EXTRA_PROGRAMS += tests/bench/parts/fma_peak
tests_bench_parts_fma_peak_SOURCES = tests/bench/parts/fma_peak.c
tests_bench_parts_fma_peak_LDADD = -lpthread
EXTRA_DIST += tests/bench/compare-pytorch tests/bench/parts/pytorch_step.py tests/bench/parts/processes.py
# Fine-tuning compared with TRL: tests/bench/recipes/compare-trl
EXTRA_DIST += tests/bench/recipes/compare-trl tests/bench/parts/trl_step.py
EXTRA_DIST += tests/bench/accuracy tests/bench/accuracy.json tests/bench/parts/pytorch_accuracy.py

# Accuracy of the recipe of torchvision's reference scripts: tests/bench/recipes/torchvision
EXTRA_DIST += tests/bench/recipes/torchvision tests/bench/recipes/pytorch_recipe.py

# Text from a trained model, compared with transformers and with the time to read the weights: tests/bench/sample
EXTRA_PROGRAMS += tests/bench/parts/read_peak
tests_bench_parts_read_peak_SOURCES = tests/bench/parts/read_peak.c
EXTRA_DIST += tests/bench/sample tests/bench/parts/transformers_sample.py
