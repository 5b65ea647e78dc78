# SPDX-License-Identifier: Apache-2.0
# safetensors in and out.
libtrainer_la_SOURCES += trainer/weights/safetensors.h trainer/weights/weights.h trainer/weights/batch_file.h \
	trainer/weights/safetensors.c trainer/weights/adapter_file.h trainer/weights/adapter_file.c trainer/weights/decoder_file.h trainer/weights/decoder_file.c trainer/weights/gpt_file.h trainer/weights/gpt_file.c trainer/weights/hf_json.h trainer/weights/hf_json.c trainer/weights/gguf_write.h trainer/weights/gguf_write.c trainer/weights/weight_layout.h trainer/weights/weight_layout.c trainer/weights/safetensors_write.c trainer/weights/weights.c \
	trainer/weights/batch_file.c trainer/weights/checkpoint.c trainer/weights/checkpoint.h \
	trainer/weights/state_json.c
