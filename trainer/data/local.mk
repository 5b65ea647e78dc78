# Data sets, sampler, loader threads.
libtrainer_la_SOURCES += trainer/data/dataset.h trainer/data/sampler.h trainer/data/loader.h
libtrainer_la_CPPFLAGS += $(ZLIB_CFLAGS)
libtrainer_la_LIBADD += $(ZLIB_LIBS)
