# SPDX-License-Identifier: Apache-2.0
# Complete runs of dptrain, started as a user starts them; the longest first.
train_tests = tests/train/ranks.py tests/train/resnet18.py tests/train/averages.py tests/train/stops.py \
	tests/train/memory.py tests/train/checkpoints.py tests/train/phases.py tests/train/accumulation.py \
	tests/train/optimizers.py tests/train/determinism.py tests/train/launcher.py tests/train/reference.py \
	tests/train/gpt_reference.py tests/train/resume.py tests/train/recompute.py tests/train/refusals.py \
	tests/train/torchvision.py tests/train/weights.py tests/train/nonfinite.py
EXTRA_DIST += tests/train/pattern.py tests/train/reference/make_torchvision.py tests/train/reference/resnet_outputs.json \
	tests/train/reference/torchvision_resnets.txt
TESTS += $(train_tests)
EXTRA_DIST += $(train_tests) tests/train/helper.py tests/train/reference/make_resnet20.py tests/train/reference/make_accumulation.py \
	tests/train/reference/accumulation.json tests/train/reference/make_casts.py tests/train/reference/casts.json tests/train/reference/reference.json \
	tests/train/reference/batch.safetensors tests/train/reference/gelu.safetensors tests/train/reference/relu.safetensors \
	tests/train/reference/weights.safetensors tests/train/reference/make_gpt.py tests/train/reference/gpt.json \
	tests/train/reference/gpt-batch.safetensors tests/train/reference/gpt-grads.safetensors \
	tests/train/reference/gpt-logits.safetensors tests/train/reference/gpt-tied.safetensors \
	tests/train/reference/gpt-untied.safetensors tests/train/reference/make_optimizers.py \
	tests/train/reference/optimizers.json tests/train/reference/make_resnet_optimizers.py \
	tests/train/reference/resnet_optimizers.json
EXTRA_DIST += tests/train/reference/make_averages.py tests/train/reference/averages.json tests/train/reference/make_resnet18.py \
	tests/train/reference/resnet18.json tests/train/reference/resnet18.safetensors

# Counts allocations; loaded with LD_PRELOAD.
check_LTLIBRARIES += tests/train/alloc_count.la
tests_train_alloc_count_la_SOURCES = tests/train/alloc_count.c
tests_train_alloc_count_la_CFLAGS = $(AM_CFLAGS) -Wno-missing-prototypes
tests_train_alloc_count_la_LDFLAGS = -module -avoid-version -rpath /nowhere

# Language models: their sizes, text sampled from a trained one, and weights that transformers reads and writes.
TESTS += tests/train/gpt_sizes.py tests/train/hugging_face/ways.py tests/train/hugging_face/bad_folders.py tests/train/hugging_face/lora.py
if HAVE_TOKENIZERS
TESTS += tests/train/sample.py tests/train/hugging_face/own_tokenizer.py tests/train/hugging_face/gguf_file.py
endif
if HAVE_TOKENIZERS
CHECK_LONG += tests/train/hugging_face/chat_loss.py tests/train/hugging_face/chat_media.py tests/train/hugging_face/chat_answers.py tests/train/hugging_face/gguf_readers.py
endif
EXTRA_DIST += tests/train/hugging_face/real-folder tests/train/hugging_face/chat_loss.py tests/train/hugging_face/chat_media.py tests/train/hugging_face/chat_answers.py tests/train/hugging_face/gguf_readers.py tests/train/hugging_face/gguf_file.py
CHECK_LONG += tests/train/hugging_face/gpt.py tests/train/hugging_face/decoders.py tests/train/hugging_face/lora_peft.py
EXTRA_DIST += tests/train/gpt_sizes.py tests/train/sample.py tests/train/hugging_face/ways.py tests/train/hugging_face/bad_folders.py
EXTRA_DIST += tests/train/hugging_face/lora.py tests/train/hugging_face/lora_peft.py tests/train/hugging_face/own_tokenizer.py tests/train/hugging_face/folders.py tests/train/hugging_face/gpt.py tests/train/hugging_face/decoders.py tests/train/hugging_face/transformers_venv.py

include tests/train/levels/local.mk
include tests/train/strategies/local.mk
