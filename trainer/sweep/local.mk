# SPDX-License-Identifier: Apache-2.0
# Searches over settings.
libtrainer_la_SOURCES += trainer/sweep/sweep_plan.c \
	trainer/sweep/sweep.c trainer/sweep/sweep.h \
	trainer/sweep/trial.c
