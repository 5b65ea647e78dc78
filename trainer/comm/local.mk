# Communicators, how ranks meet, and the modules that carry bytes between machines.
libtrainer_la_SOURCES += trainer/comm/comm.h trainer/comm/bootstrap.c trainer/comm/bootstrap.h trainer/comm/flight.c trainer/comm/flight.h trainer/comm/held.c trainer/comm/held.h trainer/comm/link.c \
	trainer/comm/link.h trainer/comm/messages.c trainer/comm/messages.h trainer/comm/module.c trainer/comm/module.h trainer/comm/nodes.c trainer/comm/nodes.h \
	trainer/comm/nodes_base.c trainer/comm/nodes_base.h trainer/comm/nodes_copies.c trainer/comm/nodes_groups.c trainer/comm/nodes_leaves.c trainer/comm/nodes_sums.c \
	trainer/comm/nodes_terms.c trainer/comm/nodes_terms.h \
	trainer/comm/rendezvous.c trainer/comm/rendezvous.h trainer/comm/self.c trainer/comm/shm.c trainer/comm/shm.h \
	trainer/comm/shm_area.c trainer/comm/shm_area.h trainer/comm/tcp.c \
	trainer/comm/tcp.h
libgraph_la_SOURCES += trainer/comm/sum.c trainer/comm/sum.h # kernels add too
include trainer/comm/ucx/local.mk
include trainer/comm/mpi/local.mk
