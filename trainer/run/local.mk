# One rank of a training run: set-up, step, loop, evaluation, report; exec: runs the schedules.
libtrainer_la_SOURCES += trainer/run/cached_step.c trainer/run/cached_step.h trainer/run/nonfinite_search.c \
	trainer/run/nonfinite_search.h trainer/run/console.c trainer/run/console.h trainer/run/engine.c \
	trainer/run/engine.h trainer/run/evaluate.c trainer/run/evaluate.h trainer/program/test_hooks.c \
	trainer/program/test_hooks.h trainer/run/log_datasets.c trainer/run/log_datasets.h trainer/run/nonfinite.c \
	trainer/run/nonfinite.h trainer/run/eval_metrics.c trainer/run/eval_metrics.h trainer/run/report.c \
	trainer/run/report.h trainer/run/checkpoint_writer.c trainer/run/checkpoint_writer.h trainer/run/loss_spike.c \
	trainer/run/loss_spike.h trainer/run/step.c trainer/run/step.h trainer/run/trace.c trainer/run/trace.h \
	trainer/run/trace_report.c trainer/run/trace_report.h trainer/run/train.c trainer/run/train.h \
	trainer/run/watch_record.c trainer/run/watch_record.h trainer/run/exec/exec.c trainer/run/exec/exec.h \
	trainer/run/exec/exec_host.c trainer/run/exec/exec_stream.c \
	trainer/run/exec/exec_stream_group.c trainer/run/exec/exec_stream_inside.h \
	trainer/run/exec/exec_stream_program.c \
	trainer/run/exec/exec_stream_time.c trainer/run/exec/exec_time.c trainer/run/exec/exec_time.h \
	trainer/run/exec/exec_value.c trainer/run/exec/exec_value.h trainer/run/exec/ring.c \
	trainer/run/exec/ring.h
