# SPDX-License-Identifier: Apache-2.0
# Parts that kernels use as well (libgraph_la_SOURCES); the graph, its passes and the planner (libtrainer_la_SOURCES).
libgraph_la_SOURCES += trainer/graph/host_device.h trainer/graph/document_mark.h trainer/graph/graph.h trainer/graph/kernel.h trainer/graph/reduction_tree.h trainer/graph/op.h trainer/graph/pass.h trainer/graph/plan.h trainer/graph/rng.h trainer/graph/normal_lanes.h trainer/graph/schedule.h \
	trainer/graph/reduction_tree.c trainer/graph/types.c trainer/graph/rng.c
libtrainer_la_SOURCES += trainer/graph/graph_dump.c trainer/graph/fuse.c trainer/graph/grad.c trainer/graph/graph.c trainer/graph/layout_pass.c trainer/graph/normal.c trainer/graph/liveness.c trainer/graph/liveness.h trainer/graph/op.c trainer/graph/slab.c trainer/graph/slab.h trainer/graph/plan.c trainer/graph/precision.c trainer/graph/cast_table.c trainer/graph/recompute.c trainer/graph/schedule.c
