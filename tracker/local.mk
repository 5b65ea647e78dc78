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

# libtracker: journals, runs and their way to a server; libdptrack, dptrain and dptrack are linked from it.
noinst_LTLIBRARIES += libtracker.la
libtracker_la_SOURCES = \
	tracker/dptrack.h \
	tracker/event/encode.c tracker/event/encode.h \
	tracker/event/event.c tracker/event/event.h \
	tracker/event/fields.h \
	tracker/event/key.c tracker/event/key.h \
	tracker/event/limits.h \
	tracker/event/record.c tracker/event/record.h \
	tracker/event/tensorboard.h \
	tracker/event/wire.c tracker/event/wire.h
libtracker_la_LIBADD = libtrackbase.la
include_HEADERS += tracker/dptrack.h
