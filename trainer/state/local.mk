# Whole persistent tensors by name: drawn, read, written, resumed.
libtrainer_la_SOURCES += trainer/state/draw.c trainer/state/draw.h trainer/state/files.c trainer/state/initial.c \
	trainer/state/initial.h trainer/state/resume.c trainer/state/resume.h
