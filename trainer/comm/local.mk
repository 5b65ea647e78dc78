# SPDX-License-Identifier: Apache-2.0
# Communicators, how ranks connect, and the transport modules between machines.
libtrainer_la_SOURCES += trainer/comm/bootstrap.c trainer/comm/bootstrap.h trainer/comm/comm.c trainer/comm/comm.h \
	trainer/comm/flight.c trainer/comm/flight.h trainer/comm/hier.c trainer/comm/hier.h trainer/comm/hier_base.c \
	trainer/comm/hier_base.h trainer/comm/hier_sums.c trainer/comm/link.c trainer/comm/link.h \
	trainer/comm/local_socket.c trainer/comm/requests.c \
	trainer/comm/shm.c trainer/comm/shm.h trainer/comm/shm_area.c trainer/comm/shm_area.h \
	trainer/comm/shm_call.c trainer/comm/shm_pieces.c trainer/comm/shm_sums.c \
	trainer/comm/tcp.c
libgraph_la_SOURCES += trainer/comm/sum.c trainer/comm/sum.h # kernels add too
include trainer/comm/ucx/local.mk
include trainer/comm/mpi/local.mk
