# SPDX-License-Identifier: Apache-2.0
# Starts the ranks, gives them their context, watches their end.
libtrainer_la_SOURCES += trainer/launch/child_ranks.c trainer/launch/child_ranks.h trainer/launch/job_result.c \
	trainer/launch/job_result.h trainer/launch/launch.c trainer/launch/launch.h trainer/launch/machine.c \
	trainer/launch/machine.h trainer/launch/node_group.c trainer/launch/node_group.h trainer/launch/rank_context.c \
	trainer/launch/rank_context.h trainer/launch/rank_env.c trainer/launch/rank_env.h
