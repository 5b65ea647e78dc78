# SPDX-License-Identifier: Apache-2.0
# Whole persistent tensors by name: initial values, files, checkpoints.
libtrainer_la_SOURCES += trainer/state/tensor_files.c trainer/state/tensor_files.h trainer/state/initial.c \
	trainer/state/initial.h trainer/state/resume.c trainer/state/resume.h \
	trainer/state/tensors.c trainer/state/tensors.h
