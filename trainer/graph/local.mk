# What kernels use too (libgraph_la_SOURCES); the graph itself, its passes and the planner (libtrainer_la_SOURCES).
libgraph_la_SOURCES += trainer/graph/both.h trainer/graph/graph.h trainer/graph/kernel.h trainer/graph/op.h trainer/graph/pass.h trainer/graph/plan.h trainer/graph/rng.h trainer/graph/normal.h trainer/graph/normal_lanes.h trainer/graph/schedule.h \
	trainer/graph/types.c trainer/graph/rng.c
libtrainer_la_SOURCES += trainer/graph/dump.c trainer/graph/fuse.c trainer/graph/grad.c trainer/graph/graph.c trainer/graph/layout.c trainer/graph/normal.c trainer/graph/live.c trainer/graph/live.h trainer/graph/op.c trainer/graph/slab.c trainer/graph/slab.h trainer/graph/plan.c trainer/graph/precision.c trainer/graph/recompute.c trainer/graph/schedule.c trainer/graph/shape.c
