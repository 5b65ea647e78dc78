# SPDX-License-Identifier: Apache-2.0
# Subcommands beside training.
libtrainer_la_SOURCES += trainer/tools/bench_compare.c trainer/tools/auto.c \
	trainer/tools/auto_text.c trainer/tools/auto_text.h trainer/tools/map_text.c trainer/tools/catalogue.c trainer/tools/calibrate.c trainer/tools/child.c trainer/tools/child.h \
	trainer/tools/costing.c trainer/tools/costing.h
libtrainer_la_SOURCES += trainer/tools/bandwidth.c trainer/tools/bench.c trainer/tools/bench_loader.c trainer/tools/describe.c \
	trainer/tools/doctor.c trainer/tools/find.c trainer/tools/inspect_data.c \
	trainer/tools/step_profile.c trainer/tools/step_profile.h trainer/tools/roof.c \
	trainer/tools/export_gguf.c trainer/tools/gguf_tokenizer.c trainer/tools/gguf_tokenizer.h trainer/tools/merge.c trainer/tools/out_folder.c trainer/tools/out_folder.h trainer/tools/sample_text.c trainer/tools/shard.c trainer/tools/subcommands.h
