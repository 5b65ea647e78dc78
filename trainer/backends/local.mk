# SPDX-License-Identifier: Apache-2.0
# The backend interface, the loader, ref, and the modules cpu/ and cuda/.
libtrainer_la_SOURCES += trainer/backends/backend.h trainer/backends/backend_loader.c trainer/backends/ref_backend.c trainer/backends/ref_emulate.c
libtrainer_la_CPPFLAGS += -DDPTRAIN_MODULE_DIR='"$(pkglibdir)"'
include trainer/backends/cpu/local.mk
include trainer/backends/cuda/local.mk
