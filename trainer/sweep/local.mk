# Searches over settings.
libtrainer_la_SOURCES += trainer/sweep/asha.c trainer/sweep/asha.h trainer/sweep/plan.c trainer/sweep/plan.h \
	trainer/sweep/space.c trainer/sweep/space.h trainer/sweep/sweep.c trainer/sweep/sweep.h \
	trainer/sweep/trial.c trainer/sweep/trial.h
