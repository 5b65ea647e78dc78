# libtrackbase: the floor that all three programs stand on.
noinst_LTLIBRARIES += libtrackbase.la
libtrackbase_la_SOURCES = \
	tracker/base/arena.c tracker/base/arena.h \
	tracker/base/buf.c tracker/base/buf.h \
	tracker/base/clock.c tracker/base/clock.h \
	tracker/base/crc32c.c tracker/base/crc32c.h \
	tracker/base/err.c tracker/base/err.h \
	tracker/base/log.c tracker/base/log.h \
	tracker/base/queue.c tracker/base/queue.h
