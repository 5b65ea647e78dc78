# SPDX-License-Identifier: Apache-2.0
# Weights and checkpoints as files.
cmocka_tests += tests/weights/checkpoint_test tests/weights/safetensors_test tests/weights/torchvision_test \
	tests/weights/weights_test
tests_weights_checkpoint_test_LDFLAGS = $(AM_LDFLAGS) -static \
	-Wl,--wrap=mkdir,--wrap=fsync,--wrap=rename,--wrap=renameat2,--wrap=write,--wrap=unlink,--wrap=rmdir
if HAVE_TOKENIZERS
TESTS += tests/weights/hf_config.py
endif
EXTRA_DIST += tests/weights/hf_config.py
EXTRA_DIST += tests/weights/safetensors_golden.py tests/weights/golden.safetensors
