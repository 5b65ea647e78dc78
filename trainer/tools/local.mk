# Subcommands beside training.
libtrainer_la_SOURCES += trainer/tools/bench_compare.c trainer/tools/bench_compare.h trainer/tools/auto.c trainer/tools/auto.h \
	trainer/tools/auto_text.c trainer/tools/auto_text.h trainer/tools/calibrate.c trainer/tools/calibrate.h trainer/tools/child.c trainer/tools/child.h \
	trainer/tools/curve.c trainer/tools/curve.h trainer/tools/costing.c trainer/tools/costing.h \
	trainer/tools/whole.c trainer/tools/whole.h
libtrainer_la_SOURCES += trainer/tools/bandwidth.c trainer/tools/bandwidth.h trainer/tools/bench.c trainer/tools/bench.h trainer/tools/bench_ops.c trainer/tools/bench_ops.h trainer/tools/bench_loader.c trainer/tools/bench_loader.h trainer/tools/describe.c trainer/tools/describe.h \
	trainer/tools/doctor.c trainer/tools/doctor.h trainer/tools/find.c trainer/tools/find.h trainer/tools/bench_links.c trainer/tools/bench_links.h \
	trainer/tools/find_batch.c trainer/tools/find_batch.h trainer/tools/real.h \
	trainer/tools/recorded.c trainer/tools/recorded.h \
	trainer/tools/probe.c trainer/tools/probe.h \
	trainer/tools/step_profile.c trainer/tools/step_profile.h trainer/tools/progress.c trainer/tools/progress.h trainer/tools/roof.c trainer/tools/roof.h \
	trainer/tools/sample_text.c trainer/tools/sample_text.h trainer/tools/shard.c trainer/tools/shard.h
