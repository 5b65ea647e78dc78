# SPDX-License-Identifier: Apache-2.0
# From flags to programs: workload, passes, plan, kernels, memory.
libtrainer_la_SOURCES += trainer/program/train_schedule.c \
	trainer/program/devices.c trainer/program/devices.h \
	trainer/program/loading.c trainer/program/loading.h \
	trainer/program/memory.c trainer/program/memory.h trainer/program/optimizer.c trainer/program/optimizer.h \
	trainer/program/planning.c trainer/program/planning.h trainer/program/prepare.c trainer/program/prepare.h trainer/program/program.c trainer/program/program.h \
	trainer/program/rank.c trainer/program/rank.h trainer/program/rank_check.c trainer/program/shared_cache.c trainer/program/workload.c trainer/program/workload.h
