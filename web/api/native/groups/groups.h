/* groups.h: runs in groups by params and tags, and what a group's numbers are together: mean, sample standard
 * deviation, median, the quantile of its band. */
#ifndef DPT_NATIVE_GROUPS_H
#define DPT_NATIVE_GROUPS_H

#include "web/api/api.h"
#include "web/api/js.h"
#include "web/store/read/query.h"

struct groups {
	const char *const *fields; /* "params.lr", "tags.team", "status" */
	size_t field_count;
	size_t count;
	size_t *of;                /* group of each run, in the order of the runs */
	const char ***values;      /* of each group by field; NULL: its runs have none */
	size_t *sizes;             /* runs of each group */
};

/* Groups in the order in which their first runs stand. False after failing the call: a field that is none. */
bool groups_make(struct call *c, const char *const *fields, size_t n, const struct query_runs *runs,
		 struct groups *ret);

/* The members "group" ({"params.lr": "0.1"}, null where its runs have none) and "runs" (ids) of an open object. */
void groups_write(struct js *j, const struct groups *g, size_t group, const struct query_runs *runs);

struct groups_sum {
	size_t n;
	double mean, std; /* sample standard deviation; NaN of one value, as the mean of none */
};

/* Of the finite ones among the values. */
struct groups_sum groups_sum(const double *values, size_t n);


/* The 97.5 % quantile of Student's t with so many degrees of freedom. */
double groups_t975(size_t freedom);

#endif
