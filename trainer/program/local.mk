# From flags to programs: subject, passes, plan, kernels, memory.
libtrainer_la_SOURCES += trainer/program/agree.c trainer/program/agree.h trainer/program/course.c trainer/program/course.h \
	trainer/program/devices.c trainer/program/devices.h trainer/program/fault.c trainer/program/fault.h \
	trainer/program/kernels.c trainer/program/kernels.h trainer/program/loading.c trainer/program/loading.h \
	trainer/program/memory.c trainer/program/memory.h trainer/program/optimizer.c trainer/program/optimizer.h trainer/program/peers.c trainer/program/peers.h \
	trainer/program/planning.c trainer/program/planning.h trainer/program/prepare.c trainer/program/prepare.h trainer/program/program.c trainer/program/program.h \
	trainer/program/rank.c trainer/program/rank.h trainer/program/same_flags.c trainer/program/same_flags.h trainer/program/spill.c trainer/program/spill.h trainer/program/watching.c trainer/program/watching.h trainer/program/workers.c trainer/program/traffic.c trainer/program/traffic.h trainer/program/workers.h trainer/program/subject.c trainer/program/subject.h
