# Searches over settings.
libtrainer_la_SOURCES += trainer/sweep/asha.c trainer/sweep/asha.h trainer/sweep/sweep_plan.c trainer/sweep/sweep_plan.h \
	trainer/sweep/space.c trainer/sweep/space.h trainer/sweep/sweep.c trainer/sweep/sweep.h \
	trainer/sweep/trial.c trainer/sweep/trial.h
