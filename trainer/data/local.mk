# Data sets, sampler, loader threads.
libtrainer_la_SOURCES += trainer/data/dataset.h trainer/data/sampler.h trainer/data/loader.h trainer/data/pixels.h \
	trainer/data/idx_file.h trainer/data/datasets.def \
	trainer/data/dataset.c trainer/data/idx.c trainer/data/idx_file.c trainer/data/made.c trainer/data/made_tokens.c trainer/data/pixels.c \
	trainer/data/sampler.c trainer/data/loader.c
libtrainer_la_CPPFLAGS += $(ZLIB_CFLAGS)
libtrainer_la_LIBADD += $(ZLIB_LIBS)
