# Data sets, sampler, loader threads.
libtrainer_la_SOURCES += trainer/data/dataset.h trainer/data/sampler.h trainer/data/loader.h trainer/data/pixels.h \
	trainer/data/idx_file.h trainer/data/datasets.def \
	trainer/data/dataset.c trainer/data/idx.c trainer/data/idx_file.c trainer/data/made.c trainer/data/made_tokens.c trainer/data/pixels.c \
	trainer/data/tokenizer.h trainer/data/tokenizer.c trainer/data/bpe.h trainer/data/bpe.c trainer/data/merge.h \
	trainer/data/merge.c trainer/data/words.c trainer/data/unicode.def trainer/data/token_file.h trainer/data/token_file.c \
	trainer/data/tokenize.h trainer/data/tokenize.c trainer/data/tokens.h trainer/data/tokens.c trainer/data/text.c \
	trainer/data/sampler.c trainer/data/loader.c trainer/data/slots.c trainer/data/slots.h trainer/data/fill.h trainer/data/fill.c \
	trainer/data/folder.h trainer/data/folder.c trainer/data/folder_scan.c trainer/data/cifar.c trainer/data/tar.h trainer/data/tar.c \
	trainer/data/picture.h trainer/data/picture.c trainer/data/resize.h trainer/data/resize.c trainer/data/codec.h trainer/data/simd.h \
	trainer/data/room.h trainer/data/room.c
if HAVE_IMAGES
libtrainer_la_SOURCES += trainer/data/jpeg.c trainer/data/entropy.h trainer/data/entropy.c trainer/data/png.c
libtrainer_la_CPPFLAGS += -DHAVE_IMAGES $(JPEG_CFLAGS) $(PNG_CFLAGS)
libtrainer_la_LIBADD += $(JPEG_LIBS) $(PNG_LIBS)
else
EXTRA_DIST += trainer/data/jpeg.c trainer/data/entropy.h trainer/data/entropy.c trainer/data/png.c
endif
libtrainer_la_CPPFLAGS += $(ZLIB_CFLAGS)
libtrainer_la_LIBADD += $(ZLIB_LIBS)
