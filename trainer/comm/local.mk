# Communicators.
libtrainer_la_SOURCES += trainer/comm/comm.h trainer/comm/self.c
