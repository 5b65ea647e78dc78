# From flags to programs: workload, passes, plan, kernels, memory.
libtrainer_la_SOURCES += trainer/program/collective_check.c trainer/program/collective_check.h trainer/program/train_schedule.c trainer/program/train_schedule.h \
	trainer/program/devices.c trainer/program/devices.h trainer/program/test_hooks.c trainer/program/test_hooks.h \
	trainer/program/kernels.c trainer/program/kernels.h trainer/program/loading.c trainer/program/loading.h \
	trainer/program/memory.c trainer/program/memory.h trainer/program/optimizer.c trainer/program/optimizer.h trainer/program/shm_usage.c trainer/program/shm_usage.h \
	trainer/program/planning.c trainer/program/planning.h trainer/program/prepare.c trainer/program/prepare.h trainer/program/program.c trainer/program/program.h \
	trainer/program/rank.c trainer/program/rank.h trainer/program/same_flags.c trainer/program/same_flags.h trainer/program/slab_file.c trainer/program/slab_file.h trainer/program/watching.c trainer/program/watching.h trainer/program/workers.c trainer/program/comm_volume.c trainer/program/comm_volume.h trainer/program/workers.h trainer/program/workload.c trainer/program/workload.h
