# Data sets, sampler, loader threads.
libtrainer_la_SOURCES += trainer/data/dataset.h trainer/data/loader/sampler.h trainer/data/loader/loader.h trainer/data/pictures/pixels.h \
	trainer/data/formats/idx_file.h trainer/data/formats/datasets.def \
	trainer/data/dataset.c trainer/data/formats/idx.c trainer/data/formats/idx_file.c trainer/data/formats/made.c trainer/data/formats/made_tokens.c trainer/data/pictures/pixels.c \
	trainer/data/words/tokenizer.h trainer/data/words/tokenizer.c trainer/data/words/bpe.h trainer/data/words/bpe.c trainer/data/words/merge.h \
	trainer/data/words/merge.c trainer/data/words/words.c trainer/data/words/unicode.def trainer/data/words/token_file.h trainer/data/words/token_file.c \
	trainer/data/words/tokenize.h trainer/data/words/tokenize.c trainer/data/formats/tokens.h trainer/data/formats/tokens.c trainer/data/formats/text.c \
	trainer/data/loader/sampler.c trainer/data/loader/loader.c trainer/data/loader/slots.c trainer/data/loader/slots.h trainer/data/loader/fill.h trainer/data/loader/fill.c \
	trainer/data/formats/folder.h trainer/data/formats/folder.c trainer/data/formats/folder_scan.c trainer/data/formats/cifar.c trainer/data/formats/tar.h trainer/data/formats/tar.c \
	trainer/data/pictures/picture.h trainer/data/pictures/picture.c trainer/data/pictures/resize.h trainer/data/pictures/resize.c trainer/data/pictures/codec.h trainer/data/pictures/simd.h \
	trainer/data/pictures/grow.h trainer/data/pictures/grow.c
if HAVE_IMAGES
libtrainer_la_SOURCES += trainer/data/pictures/jpeg.c trainer/data/pictures/entropy.h trainer/data/pictures/entropy.c trainer/data/pictures/png.c
libtrainer_la_CPPFLAGS += -DHAVE_IMAGES $(JPEG_CFLAGS) $(PNG_CFLAGS)
libtrainer_la_LIBADD += $(JPEG_LIBS) $(PNG_LIBS)
else
EXTRA_DIST += trainer/data/pictures/jpeg.c trainer/data/pictures/entropy.h trainer/data/pictures/entropy.c trainer/data/pictures/png.c
endif
libtrainer_la_CPPFLAGS += $(ZLIB_CFLAGS)
libtrainer_la_LIBADD += $(ZLIB_LIBS)
