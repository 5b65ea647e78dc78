# strategies.def and one file for each strategy. Shared: sums over all ranks (share) and along the reduction tree (terms),
# buckets of gradients (buckets), units of parameters (units), their gather (gather) and scatter (scatter), stages of
# pipelines (stages), offloading (offload).
libtrainer_la_SOURCES += trainer/strategies/buckets.c trainer/strategies/buckets.h trainer/strategies/ddp.c trainer/strategies/dp.c trainer/strategies/pdp.c trainer/strategies/stages.c trainer/strategies/stages.h trainer/strategies/fsdp.c trainer/strategies/gather.c \
	trainer/strategies/gather.h trainer/strategies/offload.c trainer/strategies/offload.h trainer/strategies/scatter.c trainer/strategies/scatter.h trainer/strategies/share.c \
	trainer/strategies/share.h trainer/strategies/single.c trainer/strategies/strategies.def \
	trainer/strategies/strategy.c trainer/strategies/strategy.h trainer/strategies/strategy_sums.c trainer/strategies/strategy_sums.h trainer/strategies/units.c trainer/strategies/units.h
