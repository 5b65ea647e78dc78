/* why_read.h: runs, those equal to them, and what a sample of each costs, read from the store. */
#ifndef DPT_NATIVE_WHY_READ_H
#define DPT_NATIVE_WHY_READ_H

#include "tracker/insight/run_change.h"
#include "web/api/api.h"

/* A named run and its repeats. */
struct why_side {
	const struct query_run *run; /* the one that was named */
	const char **repeats;        /* ids of the others that count with it */
	struct step_time *paces;          /* the run's own first */
	double *metrics;             /* their best value of the goal, NaN where one has none */
	size_t n;
};

struct why {
	struct why_side *sides;
	size_t n;
	struct change_pool pool; /* of further groups of equal runs on the same host */
	size_t reads;            /* runs besides the named ones whose points were looked at */
	const char *metric;      /* the goal that all named runs have; NULL: none */
	bool more;               /* more of it is better */
};

/* Params in which repeats may differ: name, seed, and random inputs made from it. */
bool why_is_own(const struct query_kv *param);

const char *why_param(const struct query_run *run, const char *key); /* NULL: not there */

/* ids: at least two. 0, or negative after failing the call. Everything lives in the call's arena. */
int why_read(struct call *c, const char *const *ids, size_t n, struct why *ret);

/* Mean seconds a sample of a side's runs: of a phase (enum step_time_phase); STEP_TIME_PHASES: of all. */
double why_mean(const struct why_side *s, int phase);

#endif
