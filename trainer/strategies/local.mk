# SPDX-License-Identifier: Apache-2.0
# strategies.def and a file for each strategy; what they share: sums (strategy.c), units of parameters, their gather,
# stages of pipelines; offloading.
libtrainer_la_SOURCES += trainer/strategies/ddp.c trainer/strategies/dp.c trainer/strategies/fsdp.c \
	trainer/strategies/gather.c trainer/strategies/offload.c trainer/strategies/pdp.c \
	trainer/strategies/stages.c trainer/strategies/strategies.c trainer/strategies/strategies.def trainer/strategies/strategy.c \
	trainer/strategies/strategy.h trainer/strategies/strategy_inside.h trainer/strategies/units.c
