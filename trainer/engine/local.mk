# Preparation, the step, the loop, the report, the launcher.
libtrainer_la_SOURCES += \
	trainer/engine/bench.c \
	trainer/engine/bench_ops.c \
	trainer/engine/bench_ops.h \
	trainer/engine/console.c \
	trainer/engine/console.h \
	trainer/engine/describe.c \
	trainer/engine/engine.h \
	trainer/engine/evaluate.c \
	trainer/engine/exec.c \
	trainer/engine/exec.h \
	trainer/engine/files.c \
	trainer/engine/launch.c \
	trainer/engine/launch.h \
	trainer/engine/machine.c \
	trainer/engine/machine.h \
	trainer/engine/optimizer.c \
	trainer/engine/optimizer.h \
	trainer/engine/place.c \
	trainer/engine/place.h \
	trainer/engine/prepare.c \
	trainer/engine/prepare.h \
	trainer/engine/program.c \
	trainer/engine/program.h \
	trainer/engine/report.c \
	trainer/engine/report.h \
	trainer/engine/resume.c \
	trainer/engine/resume.h \
	trainer/engine/saver.c \
	trainer/engine/saver.h \
	trainer/engine/seat.c \
	trainer/engine/seat.h \
	trainer/engine/setup.c \
	trainer/engine/step.c \
	trainer/engine/subject.c \
	trainer/engine/subject.h \
	trainer/engine/train.c
