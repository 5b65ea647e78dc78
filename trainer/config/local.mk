# Flags and the resolved run configuration.
libtrainer_la_SOURCES += trainer/config/config.h trainer/config/flags.def trainer/config/schedule.h
libtrainer_la_CPPFLAGS += $(JANSSON_CFLAGS)
libtrainer_la_LIBADD += $(JANSSON_LIBS)
