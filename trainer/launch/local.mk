# Who starts the ranks, where they sit, how they end.
libtrainer_la_SOURCES += trainer/launch/launch.c trainer/launch/launch.h trainer/launch/machine.c trainer/launch/machine.h \
	trainer/launch/nodes.c trainer/launch/nodes.h \
	trainer/launch/place.c trainer/launch/place.h trainer/launch/relay.c trainer/launch/relay.h \
	trainer/launch/seat.c trainer/launch/seat.h \
	trainer/launch/slurm.c trainer/launch/slurm.h \
	trainer/launch/verdict.c trainer/launch/verdict.h
