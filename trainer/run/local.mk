# SPDX-License-Identifier: Apache-2.0
# One rank of a training run: set-up, step, loop, evaluation, report; exec: runs the schedules.
libtrainer_la_SOURCES += trainer/run/val_answer.c trainer/run/checkpoint_writer.c trainer/run/console.c trainer/run/engine.c \
	trainer/run/engine.h trainer/run/evaluate.c trainer/run/evaluate.h trainer/run/log_datasets.c \
	trainer/run/loop.c trainer/run/loss_spike.c \
	trainer/run/nonfinite_search.c trainer/run/nonfinite.c trainer/run/nonfinite.h trainer/run/observers.c \
	trainer/run/observers.h trainer/run/report.c trainer/run/report.h trainer/run/step.c trainer/run/step.h \
	trainer/run/trace.c trainer/run/trace.h trainer/run/train.c trainer/run/watch_record.c \
	trainer/run/exec/exec.c trainer/run/exec/exec_calls.c trainer/run/exec/exec.h trainer/run/exec/exec_host.c \
	trainer/run/exec/exec_host_program.c \
	trainer/run/exec/exec_inside.h trainer/run/exec/exec_stream.c trainer/run/exec/exec_stream_inside.h \
	trainer/run/exec/exec_stream_program.c trainer/run/exec/ring.c
