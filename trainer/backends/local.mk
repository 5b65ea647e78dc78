# The ABI, the loader, ref, and the modules cpu/ and cuda/.
libtrainer_la_SOURCES += trainer/backends/backend.h trainer/backends/ref.c
include trainer/backends/cuda/local.mk
