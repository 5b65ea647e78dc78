# The ABI, the loader, ref, and the modules cpu/ and cuda/.
libtrainer_la_SOURCES += trainer/backends/backend.h
include trainer/backends/cuda/local.mk
