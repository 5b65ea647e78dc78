# The ABI, the loader, ref, and the modules cpu/ and cuda/.
libtrainer_la_SOURCES += trainer/backends/backend.h trainer/backends/loader.c trainer/backends/ref.c
libtrainer_la_CPPFLAGS += -DDPTRAIN_MODULE_DIR='"$(pkglibdir)"'
include trainer/backends/cpu/local.mk
include trainer/backends/cuda/local.mk
