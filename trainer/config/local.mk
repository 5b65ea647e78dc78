# Flags and the resolved run configuration.
libtrainer_la_SOURCES += trainer/config/config.h trainer/config/flags.def trainer/config/schedule.h trainer/config/flags.h \
	trainer/config/flags.c trainer/config/parse.c trainer/config/file.c trainer/config/resolve.c \
	trainer/config/nearest.c trainer/config/print.c trainer/config/schedule.c
libtrainer_la_CPPFLAGS += $(JANSSON_CFLAGS)
libtrainer_la_LIBADD += $(JANSSON_LIBS)
