/* strategy.c: the table of strategies. */
#include "trainer/strategies/strategy.h"

#define STRATEGY(name, ...) extern const struct strategy strategy_##name;
#include "trainer/strategies/strategies.def"
#undef STRATEGY

const struct strategy *const strategies_table[STRATEGY_COUNT] = {
#define STRATEGY(name, ...) [STRATEGY_##name] = &strategy_##name,
#include "trainer/strategies/strategies.def"
#undef STRATEGY
};
