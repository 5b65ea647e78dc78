# strategies.def and one file per strategy.
libtrainer_la_SOURCES += trainer/strategies/ddp.c trainer/strategies/single.c trainer/strategies/strategies.def trainer/strategies/strategy.c trainer/strategies/strategy.h
