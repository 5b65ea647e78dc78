# Communicators.
libtrainer_la_SOURCES += trainer/comm/comm.h trainer/comm/rendezvous.c trainer/comm/rendezvous.h trainer/comm/self.c trainer/comm/shm.c trainer/comm/shm_area.c trainer/comm/shm_area.h trainer/comm/sum.c trainer/comm/sum.h
