/* train_series.h: the series that dptrain writes, from series.def; nothing is recorded under another key. */
#ifndef DPT_CONFIG_TRAIN_SERIES_H
#define DPT_CONFIG_TRAIN_SERIES_H

enum series_of { SERIES_OF_RUN, SERIES_OF_RANK, SERIES_OF_ROOT };
enum series_at { SERIES_AT_STEP, SERIES_AT_EPOCH };
enum series_best { SERIES_BEST_NONE, SERIES_BEST_LESS, SERIES_BEST_MORE };

enum series_id {
#define SERIES(group, name, ...) SERIES_##group##_##name,
#include "trainer/config/series.def"
#undef SERIES
	SERIES_COUNT
};

struct series {
	const char *key; /* "train/loss" */
	enum series_of of;
	enum series_at at;
	enum series_best best;
	const char *help;
};

const struct series *series_get(enum series_id id);

/* Returns the series with that key if --save-best can select by it; else NULL. */
const struct series *series_best(const char *key);

#endif
