# The graph core (libgraph_la_SOURCES) and its passes (libtrainer_la_SOURCES).
libgraph_la_SOURCES += trainer/graph/graph.h trainer/graph/kernel.h trainer/graph/op.h trainer/graph/pass.h trainer/graph/plan.h trainer/graph/rng.h trainer/graph/schedule.h trainer/graph/types.c
